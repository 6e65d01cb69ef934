// RUN: sdy-opt %s -sdy-update-non-divisible-input-output-shardings | filecheck %s

sdy.mesh @mesh = <["x"=4, "y"=2]>

// CHECK:      func.func @main(%arg0: tensor<4x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
// CHECK-SAME:   %arg1: tensor<2x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2, ?}, {"y"}]>},
// CHECK-SAME:   %arg2: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x":(1)2}]>}
// CHECK-SAME:   -> (tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2}]>})
func.func @main(%arg0: tensor<4x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>},
                %arg1: tensor<2x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {"y"}]>},
                %arg2: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x"}]>},
                %arg3: tensor<6xf32>)
    -> (tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}]>}) {
  // Values inside of the function may be padded.
  // CHECK: stablehlo.negate %arg3 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
  %0 = stablehlo.negate %arg3 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<6xf32>
  // CHECK: call @f(%0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x":(1)2}]>]>}
  %1 = call @f(%0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<6xf32>) -> tensor<6xf32>
  // CHECK: sdy.manual_computation(%1) in_shardings=[<@mesh, [{"y"}]>] out_shardings=[<@mesh, [{"y"}]>] manual_axes={"y"}
  %2 = sdy.manual_computation(%1) in_shardings=[<@mesh, [{"y", "x"}]>] out_shardings=[<@mesh, [{"y", "x"}]>]
      manual_axes={"y"} (%arg4: tensor<3xf32>) {
    sdy.return %arg4 : tensor<3xf32>
  } : (tensor<6xf32>) -> tensor<6xf32>
  return %2 : tensor<6xf32>
}

func.func private @f(%arg0: tensor<6xf32>) -> tensor<6xf32> {
  return %arg0 : tensor<6xf32>
}
