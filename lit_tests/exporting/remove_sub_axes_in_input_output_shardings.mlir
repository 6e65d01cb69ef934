// RUN: sdy-opt %s -sdy-remove-sub-axes-in-input-output-shardings | filecheck %s

sdy.mesh @mesh = <["x"=2, "y"=4, "z"=4]>

// CHECK:      func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {"z":(1)2}]>})
// CHECK-SAME:   -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"x"}]>})
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y":(1)2, ?}, {"z":(1)2}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y":(2)2, "z", ?}, {"x"}]>}) {
  // CHECK: stablehlo.negate %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y":(1)2, ?}, {?}]>]>}
  %0 = stablehlo.negate %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y":(1)2, ?}, {?}]>]>} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
