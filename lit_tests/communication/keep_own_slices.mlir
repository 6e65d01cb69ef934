// RUN: sdy-opt %s -sdy-keep-own-slices | filecheck %s

sdy.mesh @mesh = <["x"=2, "y"=4]>

// CHECK-LABEL: func.func @all_reduce
// CHECK-SAME:      (%[[ARG:.*]]: tensor<3x8xf32>)
func.func @all_reduce(%arg0: tensor<3x8xf32>) -> tensor<3x2xf32> {
  // CHECK-NEXT: %[[OWN:.*]] = "stablehlo.reduce_scatter"(%[[ARG]]) <{
  // CHECK-SAME:   dense<{{\[\[}}0, 1, 2, 3], [4, 5, 6, 7]]>
  // CHECK-SAME:   scatter_dimension = 1 : i64
  // CHECK:      }) : (tensor<3x8xf32>) -> tensor<3x2xf32>
  // CHECK-NEXT: return %[[OWN]]
  %0 = "stablehlo.all_reduce"(%arg0) <{replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %sum = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %sum : tensor<f32>
  }) : (tensor<3x8xf32>) -> tensor<3x8xf32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %four = stablehlo.constant dense<4> : tensor<ui32>
  %id = stablehlo.partition_id : tensor<ui32>
  %y = stablehlo.remainder %id, %four : tensor<ui32>
  %index = stablehlo.convert %y : (tensor<ui32>) -> tensor<i32>
  %start = stablehlo.multiply %index, %two : tensor<i32>
  %1 = stablehlo.dynamic_slice %0, %zero, %start, sizes = [3, 2] : (tensor<3x8xf32>, tensor<i32>, tensor<i32>) -> tensor<3x2xf32>
  return %1 : tensor<3x2xf32>
}

// The devices of a group count in the order of the group; the start is an entry of a table.
// CHECK-LABEL: func.func @all_gather
// CHECK-SAME:      (%[[ARG:.*]]: tensor<2x8xf32>)
func.func @all_gather(%arg0: tensor<2x8xf32>) -> tensor<4x4xf32> {
  // CHECK-NEXT: %[[OWN:.*]] = "stablehlo.all_to_all"(%[[ARG]]) <{
  // CHECK-SAME:   concat_dimension = 0 : i64
  // CHECK-SAME:   dense<{{\[\[}}4, 0], [1, 5], [2, 6], [3, 7]]>
  // CHECK-SAME:   split_count = 2 : i64, split_dimension = 1 : i64
  // CHECK-SAME:   (tensor<2x8xf32>) -> tensor<4x4xf32>
  // CHECK-NEXT: return %[[OWN]]
  %0 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, replica_groups = dense<[[4, 0], [1, 5], [2, 6], [3, 7]]> : tensor<4x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> : (tensor<2x8xf32>) -> tensor<4x8xf32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %table = stablehlo.constant dense<[4, 0, 0, 0, 0, 4, 4, 4]> : tensor<8xi32>
  %id = stablehlo.partition_id : tensor<ui32>
  %entry = stablehlo.dynamic_slice %table, %id, sizes = [1] : (tensor<8xi32>, tensor<ui32>) -> tensor<1xi32>
  %start = stablehlo.reshape %entry : (tensor<1xi32>) -> tensor<i32>
  %1 = stablehlo.dynamic_slice %0, %zero, %start, sizes = [4, 4] : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}

// Each device keeps the elements that it had. The loop carries the start unchanged.
// CHECK-LABEL: func.func @in_loop
func.func @in_loop(%arg0: tensor<2x8xf32>, %arg1: tensor<i32>) -> tensor<2x8xf32> {
  // CHECK:     stablehlo.while
  // CHECK-NOT: all_gather
  // CHECK-NOT: dynamic_slice
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<ui32>
  %id = stablehlo.partition_id : tensor<ui32>
  %begin = stablehlo.multiply %id, %two : tensor<ui32>
  %0:3 = stablehlo.while(%i = %arg1, %x = %arg0, %start = %begin) : tensor<i32>, tensor<2x8xf32>, tensor<ui32>
  cond {
    %1 = stablehlo.compare LT, %i, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> : (tensor<2x8xf32>) -> tensor<16x8xf32>
    %column = stablehlo.convert %zero : (tensor<i32>) -> tensor<ui32>
    %2 = stablehlo.dynamic_slice %1, %start, %column, sizes = [2, 8] : (tensor<16x8xf32>, tensor<ui32>, tensor<ui32>) -> tensor<2x8xf32>
    stablehlo.return %i, %2, %start : tensor<i32>, tensor<2x8xf32>, tensor<ui32>
  }
  return %0#1 : tensor<2x8xf32>
}

// The branch is not taken by all devices of a group: the collective stays before it.
// CHECK-LABEL: func.func @in_branch
// CHECK-SAME:      (%[[ARG:.*]]: tensor<16xf32>)
func.func @in_branch(%arg0: tensor<16xf32>) -> tensor<2xf32> {
  // CHECK:      %[[OWN:.*]] = "stablehlo.reduce_scatter"(%[[ARG]])
  // CHECK:      "stablehlo.if"
  // CHECK-NOT:  stablehlo.reduce_scatter
  // CHECK:      %[[HALF:.*]] = stablehlo.divide %[[OWN]], %{{.*}} : tensor<2xf32>
  // CHECK-NEXT: stablehlo.return %[[HALF]]
  %0 = "stablehlo.all_reduce"(%arg0) <{replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %sum = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %sum : tensor<f32>
  }) : (tensor<16xf32>) -> tensor<16xf32>
  %two = stablehlo.constant dense<2> : tensor<ui32>
  %id = stablehlo.partition_id : tensor<ui32>
  %start = stablehlo.multiply %id, %two : tensor<ui32>
  %first = stablehlo.compare LT, %id, %two : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
  %1 = "stablehlo.if"(%first) ({
    %twos = stablehlo.constant dense<2.0> : tensor<16xf32>
    %half = stablehlo.divide %0, %twos : tensor<16xf32>
    %own = stablehlo.dynamic_slice %half, %start, sizes = [2] : (tensor<16xf32>, tensor<ui32>) -> tensor<2xf32>
    stablehlo.return %own : tensor<2xf32>
  }, {
    %begin = stablehlo.slice %arg0 [0:2] : (tensor<16xf32>) -> tensor<2xf32>
    stablehlo.return %begin : tensor<2xf32>
  }) : (tensor<i1>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// Unchanged: the next device's elements, elements at an index that is not known, and a result with another use.
// CHECK-LABEL: func.func @unchanged
func.func @unchanged(%arg0: tensor<2x8xf32>, %arg1: tensor<i32>) -> (tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<16x8xf32>) {
  // CHECK-COUNT-3: stablehlo.all_gather
  // CHECK-NEXT:    stablehlo.dynamic_slice
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %table = stablehlo.constant dense<[2, 4, 6, 8, 10, 12, 14, 0]> : tensor<8xi32>
  %table_0 = stablehlo.constant dense<[0, 2, 4, 6, 8, 10, 12, 14]> : tensor<8xi32>
  %id = stablehlo.partition_id : tensor<ui32>
  %entry = stablehlo.dynamic_slice %table, %id, sizes = [1] : (tensor<8xi32>, tensor<ui32>) -> tensor<1xi32>
  %next = stablehlo.reshape %entry : (tensor<1xi32>) -> tensor<i32>
  %entry_0 = stablehlo.dynamic_slice %table_0, %id, sizes = [1] : (tensor<8xi32>, tensor<ui32>) -> tensor<1xi32>
  %own = stablehlo.reshape %entry_0 : (tensor<1xi32>) -> tensor<i32>
  %0 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> : (tensor<2x8xf32>) -> tensor<16x8xf32>
  %1 = stablehlo.dynamic_slice %0, %next, %zero, sizes = [2, 8] : (tensor<16x8xf32>, tensor<i32>, tensor<i32>) -> tensor<2x8xf32>
  %2 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> : (tensor<2x8xf32>) -> tensor<16x8xf32>
  %3 = stablehlo.dynamic_slice %2, %arg1, %zero, sizes = [2, 8] : (tensor<16x8xf32>, tensor<i32>, tensor<i32>) -> tensor<2x8xf32>
  %4 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> : (tensor<2x8xf32>) -> tensor<16x8xf32>
  %5 = stablehlo.dynamic_slice %4, %own, %zero, sizes = [2, 8] : (tensor<16x8xf32>, tensor<i32>, tensor<i32>) -> tensor<2x8xf32>
  return %1, %3, %5, %4 : tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<16x8xf32>
}
