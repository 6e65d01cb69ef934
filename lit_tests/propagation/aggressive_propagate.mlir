// RUN: sdy-opt %s -sdy-aggressive-propagate | filecheck %s
// RUN: sdy-opt %s -sdy-aggressive-propagate='propagation-strategy=basic' | filecheck %s --check-prefix=BASIC

sdy.mesh @mesh = <["a"=2, "b"=2]>

// Two factors compete for axis "a": the one with the larger tensor gets it.
// CHECK-LABEL: func.func @main
// CHECK:         stablehlo.dot_general
// CHECK-SAME:      <@mesh, [{"a", ?}, {?}]>
// BASIC:         stablehlo.dot_general {{.*}} contracting_dims = [1] x [0] :
func.func @main(%arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
                %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}) -> tensor<16x8xf32> {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
      : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
  return %0 : tensor<16x8xf32>
}
