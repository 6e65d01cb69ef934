// RUN: sdy-opt %s -sdy-remove-size-one-axes | filecheck %s

// CHECK: sdy.mesh @mesh = <["x"=2, "y"=1, "z"=4]>
sdy.mesh @mesh = <["x"=2, "y"=1, "z"=4]>

// CHECK: %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}p1], replicated={"z"}>}
// CHECK-SAME: %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x", "z"}p2]>}
func.func @main(
    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {?}p1], replicated={"z"}>},
    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x", "y", "z"}p2]>}) -> tensor<8x8xf32> {
  // A closed dimension loses its priority with its last axis.
  // CHECK: stablehlo.add %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {?}]>]>}
  %0 = stablehlo.add %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}p1, {?}]>]>}
      : tensor<8x8xf32>
  // CHECK: sdy.sharding_constraint %0 <@mesh, [{}, {"z":(1)2}]>
  %1 = sdy.sharding_constraint %0 <@mesh, [{}, {"z":(1)2}], replicated={"y"}> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
