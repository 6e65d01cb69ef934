// RUN: sdy-opt %s -sdy-user-priority-propagate | filecheck %s
// RUN: sdy-opt %s -sdy-user-priority-propagate='keep-sharding-rules=true' | filecheck %s --check-prefix=RULES

sdy.mesh @mesh = <["a"=2, "b"=2]>

// Priority 0 propagates first, and all priorities are removed.
// CHECK-LABEL: func.func @main
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}
// CHECK-SAME:    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}
// CHECK:         stablehlo.add
// CHECK-SAME:      <@mesh, [{?}, {"a", ?}]>
// RULES:         stablehlo.add
// RULES-SAME:      sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=8}>
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}p1, {}]>},
                %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}p0]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.add %arg0, %arg1 : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
