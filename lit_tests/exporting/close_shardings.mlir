// RUN: sdy-opt %s -sdy-close-shardings | filecheck %s

sdy.mesh @mesh = <["x"=2, "y"=2, "z"=2]>

// CHECK:      func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
// CHECK-SAME:   -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>})
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {?}], replicated={"y"}>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"y"}]>}) {
  // CHECK: stablehlo.negate %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"z"}, {}], unreduced={"y"}>]>}
  %0 = stablehlo.negate %arg0
      {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"z", ?}, {}], replicated={"x"}, unreduced={"y"}>]>}
      : tensor<8x8xf32>
  // CHECK: sdy.reshard %0 <@mesh, [{"x"}, {}]>
  %1 = sdy.reshard %0 <@mesh, [{"x", ?}, {?}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
