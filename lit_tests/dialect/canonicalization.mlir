// RUN: sdy-opt %s -canonicalize | filecheck %s

sdy.mesh @mesh = <["x"=2, "y"=2, "z"=2, "one"=1]>
sdy.mesh @single = <[], device_ids=[0]>

// CHECK-LABEL: func.func @reshard_of_reshard
func.func @reshard_of_reshard(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // CHECK-NEXT: %[[LAST:.*]] = sdy.reshard %arg0 <@mesh, [{"y"}, {}]>
  // CHECK-NEXT: return %[[LAST]]
  %0 = sdy.reshard %arg0 <@mesh, [{"x"}, {}]> : tensor<8x8xf32>
  %1 = sdy.reshard %0 <@mesh, [{"y"}, {}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// Reshards to and from a single device are kept, with a replicated tensor in between.
// CHECK-LABEL: func.func @reshard_by_way_of_all_devices
func.func @reshard_by_way_of_all_devices(%arg0: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK-NEXT: %[[WHOLE:.*]] = sdy.reshard %arg0 <@mesh, [{}]>
  // CHECK-NEXT: %[[ALONE:.*]] = sdy.reshard %[[WHOLE]] <@single, []>
  // CHECK-NEXT: %[[RESULT:.*]] = stablehlo.custom_call @f(%[[ALONE]])
  // CHECK-NEXT: %[[SHARED:.*]] = sdy.reshard %[[RESULT]] <@mesh, [{}]>
  // CHECK-NEXT: sdy.reshard %[[SHARED]] <@mesh, [{"x"}]>
  %0 = sdy.reshard %arg0 <@mesh, [{}]> : tensor<8xf32>
  %1 = sdy.reshard %0 <@single, []> : tensor<8xf32>
  %2 = stablehlo.custom_call @f(%1) {sdy.sharding = #sdy.sharding_per_value<[<@single, []>]>}
    : (tensor<8xf32>) -> tensor<8xf32>
  %3 = sdy.reshard %2 <@mesh, [{}]> : tensor<8xf32>
  %4 = sdy.reshard %3 <@mesh, [{"x"}]> : tensor<8xf32>
  return %2, %4 : tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: func.func @nothing_to_do
func.func @nothing_to_do(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x8xf32> {
  // CHECK-NEXT: return %arg0
  %0 = sdy.all_gather [{}, {}] %arg0 out_sharding=<@mesh, [{"x"}, {}]> : tensor<8x8xf32>
  %1 = sdy.all_slice [{}, {}] %0 out_sharding=<@mesh, [{"x"}, {}]> : tensor<8x8xf32>
  %2 = sdy.all_reduce {} %1 out_sharding=<@mesh, [{"x"}, {}]> : tensor<8x8xf32>
  %3 = sdy.collective_permute %2 out_sharding=<@mesh, [{"x"}, {}]> : tensor<8x8xf32>
  return %3 : tensor<8x8xf32>
}

// CHECK-LABEL: func.func @slice_of_gather
func.func @slice_of_gather(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x8xf32> {
  // CHECK: return %arg0
  %0 = sdy.all_gather [{"x"}, {}] %arg0 out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
  %1 = sdy.all_slice [{"x"}, {}] %0 out_sharding=<@mesh, [{"x"}, {}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// CHECK-LABEL: func.func @reduce_scatter
func.func @reduce_scatter(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // CHECK-NEXT: %[[SCATTER:.*]] = sdy.reduce_scatter max [{"x"}, {"y"}] %arg0 out_sharding=<@mesh, [{"x"}, {"y"}]>
  // CHECK-NEXT: %[[SLICE:.*]] = sdy.all_slice [{"z"}, {}] %[[SCATTER]] out_sharding=<@mesh, [{"x", "z"}, {"y"}]>
  // CHECK-NEXT: return %[[SLICE]]
  %0 = sdy.all_reduce max {"x", "y"} %arg0 out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
  %1 = sdy.all_slice [{"x", "z"}, {"y"}] %0 out_sharding=<@mesh, [{"x", "z"}, {"y"}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// The all-reduce has another user.
// CHECK-LABEL: func.func @no_reduce_scatter
func.func @no_reduce_scatter(%arg0: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  // CHECK-NEXT: sdy.all_reduce
  // CHECK-NEXT: sdy.all_slice
  %0 = sdy.all_reduce {"x"} %arg0 out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
  %1 = sdy.all_slice [{"x"}, {}] %0 out_sharding=<@mesh, [{"x"}, {}]> : tensor<8x8xf32>
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
}

// CHECK-LABEL: func.func @all_to_alls
func.func @all_to_alls(%arg0: tensor<8x8x8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}, {}, {}]>}) -> tensor<8x8x8x8xf32> {
  // CHECK-NEXT: sdy.all_to_all [{"x"}: 0->2, {"y"}: 1->3] %arg0 out_sharding=<@mesh, [{}, {}, {"x"}, {"y"}]>
  // CHECK-NEXT: return
  %0 = sdy.all_to_all [{"y"}: 1->3] %arg0 out_sharding=<@mesh, [{"x"}, {}, {}, {"y"}]> : tensor<8x8x8x8xf32>
  %1 = sdy.all_to_all [{"x"}: 0->2] %0 out_sharding=<@mesh, [{}, {}, {"x"}, {"y"}]> : tensor<8x8x8x8xf32>
  return %1 : tensor<8x8x8x8xf32>
}

// CHECK-LABEL: func.func @sum_of_parts
func.func @sum_of_parts(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x8xf32> {
  // CHECK:      %[[GATHER:.*]] = sdy.all_gather [{"x"}, {}] %arg0 out_sharding=<@mesh, [{}, {}]>
  // CHECK-NEXT: return %[[GATHER]]
  %0 = sdy.sharded_to_unreduced [{"x"}, {}] %arg0 out_sharding=<@mesh, [{}, {}], unreduced={"x"}> : tensor<8x8xf32>
  %1 = sdy.all_reduce {"x"} %0 out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// CHECK-LABEL: func.func @manual_along_one_device
func.func @manual_along_one_device(%arg0: tensor<8x8xf32>, %arg1: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // CHECK-NEXT: %[[NEGATE:.*]] = stablehlo.negate %arg1
  // CHECK-NEXT: return %[[NEGATE]]
  %0 = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{}, {}]>, <@mesh, [{"one"}, {}]>] out_shardings=[<@mesh, [{"one"}, {}]>] manual_axes={"one"} (%arg2: tensor<8x8xf32>, %arg3: tensor<8x8xf32>) {
    %1 = stablehlo.negate %arg3 : tensor<8x8xf32>
    sdy.return %1 : tensor<8x8xf32>
  } : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// CHECK-LABEL: func.func @manual_with_unused_input
func.func @manual_with_unused_input(%arg0: tensor<8x8xf32>, %arg1: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // CHECK-NEXT: sdy.manual_computation(%arg1) in_shardings=[<@mesh, [{"y"}, {}]>] out_shardings=[<@mesh, [{"y"}, {}]>] manual_axes={"y"} (%arg2: tensor<4x8xf32>)
  %0 = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{}, {}]>, <@mesh, [{"y"}, {}]>] out_shardings=[<@mesh, [{"y"}, {}]>] manual_axes={"y"} (%arg2: tensor<8x8xf32>, %arg3: tensor<4x8xf32>) {
    %1 = stablehlo.negate %arg3 : tensor<4x8xf32>
    sdy.return %1 : tensor<4x8xf32>
  } : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// The same elements are on each device before and after the reshape and the transpose.
// CHECK-LABEL: func.func @reshard_made_before
func.func @reshard_made_before(%arg0: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8x2x2xf32>) {
  // CHECK-NEXT: %[[FIRST:.*]] = sdy.reshard %arg0 <@mesh, [{"x"}, {}]>
  // CHECK-NEXT: %[[SPLIT:.*]] = stablehlo.reshape %[[FIRST]]
  // CHECK-NEXT: %[[TURNED:.*]] = stablehlo.transpose %[[SPLIT]], dims = [2, 0, 1]
  // CHECK-NEXT: return %[[FIRST]], %[[TURNED]]
  %0 = sdy.reshard %arg0 <@mesh, [{"x"}, {}]> : tensor<4x8xf32>
  %1 = stablehlo.reshape %arg0 : (tensor<4x8xf32>) -> tensor<2x2x8xf32>
  %2 = stablehlo.transpose %1, dims = [2, 0, 1] : (tensor<2x2x8xf32>) -> tensor<8x2x2xf32>
  %3 = sdy.reshard %2 <@mesh, [{}, {"x"}, {}]> : tensor<8x2x2xf32>
  return %0, %3 : tensor<4x8xf32>, tensor<8x2x2xf32>
}

// CHECK-LABEL: func.func @reshard_not_made_before
func.func @reshard_not_made_before(%arg0: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8x4xf32>) {
  // CHECK-COUNT-2: sdy.reshard
  %0 = sdy.reshard %arg0 <@mesh, [{"x"}, {}]> : tensor<4x8xf32>
  %1 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %2 = sdy.reshard %1 <@mesh, [{"x"}, {}]> : tensor<8x4xf32>
  return %0, %2 : tensor<4x8xf32>, tensor<8x4xf32>
}
