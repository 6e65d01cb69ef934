// RUN: sdy-opt %s -sdy-insert-explicit-reshards='enable-full-version=true least-communication=true' -verify-diagnostics | filecheck %s
// RUN: sdy-opt %s -sdy-insert-explicit-reshards='enable-full-version=true' | filecheck %s --check-prefix=ALONE

sdy.mesh @mesh = <["x"=4, "y"=2]>

// The semantics of the call along j and k are unknown, so these are replicated. Along i, each device has a shard.
// CHECK-LABEL: func.func @factorize
// ALONE-LABEL: func.func @factorize
func.func @factorize(%arg0: tensor<8x4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}, {}]>})
    -> (tensor<8x4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}, {}]>}) {
  // CHECK-NEXT: %[[ROWS:.*]] = sdy.reshard %arg0 <@mesh, [{"x"}, {}, {}]>
  // CHECK-NEXT: stablehlo.custom_call @f(%[[ROWS]])
  // ALONE-NEXT: stablehlo.custom_call @f(%arg0)
  // expected-warning @+1 {{'stablehlo.custom_call' op @f is replicated along "y": its sharding rule does not let these dimensions be split}}
  %0 = stablehlo.custom_call @f(%arg0) {
      sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}, {}]>]>,
      sdy.sharding_rule = #sdy.op_sharding_rule<([i, j, k])->([i, l, m]) {i=8, j=4, k=4, l=4, m=4}, custom>
    } : (tensor<8x4x4xf32>) -> tensor<8x4x4xf32>
  return %0 : tensor<8x4x4xf32>
}
