// RUN: sdy-opt %s -sdy-op-priority-propagate | filecheck %s
// RUN: sdy-opt %s -sdy-op-priority-propagate='run-op-priority-propagation=false' | filecheck %s --check-prefix=AT-ONCE

sdy.mesh @mesh = <["a"=2, "b"=2]>

// Shardings propagate through the addition before the matmul, although the matmul comes first.
// CHECK-LABEL:   func.func @main
// CHECK:           stablehlo.dot_general
// CHECK-SAME:        <@mesh, [{?}, {"a", ?}]>
// CHECK-NEXT:      stablehlo.add
// CHECK-SAME:        <@mesh, [{?}, {"a", ?}]>
// AT-ONCE-LABEL: func.func @main
// AT-ONCE:         stablehlo.dot_general
// AT-ONCE-SAME:      <@mesh, [{"a", ?}, {?}]>
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}, %arg1: tensor<8x8xf32>,
                %arg2: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
      : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.add %0, %arg2 : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
