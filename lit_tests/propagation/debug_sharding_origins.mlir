// RUN: sdy-opt %s -sdy-apply-sharding-constraints=debug-sharding-origins=true -sdy-basic-propagate=debug-sharding-origins=true -sdy-sink-data-flow-edges=sink-debug-sharding-origins=true | filecheck %s

sdy.mesh @mesh = <["x"=2, "y"=2]>

// The origin of an operand of a manual computation is the computation, even if an argument has the axis.

// CHECK: func.func @main(%arg0: tensor<8x8xf32> {{.*}}sdy.sharding_origins = {x = "mc_0_input: 0", y = "mc_0_input: 0"}}
// CHECK-SAME: -> (tensor<8x8xf32> {{.*}}sdy.sharding_origins = {x = "constraint_0", y = "self"}})
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"y"}]>}) {
  // CHECK: sdy.manual_computation
  // CHECK: sdy.block_arg_sharding_origins = [{x = "self", y = "self"}]
  // CHECK-SAME: sdy.result_sharding_origins = [{x = "mc_0_input: 0", y = "self"}]
  // CHECK-SAME: sdy.sharding_origin_name = "mc_0"
  %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{?}, {"y", ?}]>] out_shardings=[<@mesh, [{?}, {"y", ?}]>]
      manual_axes={"y"} (%arg1: tensor<8x4xf32>) {
    %5 = sdy.data_flow_edge %arg1 sharding=<@mesh, [{?}, {?}]> : tensor<8x4xf32>
    sdy.return %5 : tensor<8x4xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = sdy.data_flow_edge %0 sharding=<@mesh, [{?}, {"y", ?}]> : tensor<8x8xf32>
  // CHECK: stablehlo.negate {{.*}}sdy.sharding_origins = [{x = "constraint_0"}]
  %2 = stablehlo.negate %1 : tensor<8x8xf32>
  // CHECK: sdy.sharding_constraint {{.*}}sdy.sharding_origin_name = "constraint_0", sdy.sharding_origins = {x = "self"}
  %3 = sdy.sharding_constraint %2 <@mesh, [{"x"}, {}]> : tensor<8x8xf32>
  %4 = stablehlo.abs %3 : tensor<8x8xf32>
  return %4 : tensor<8x8xf32>
}
