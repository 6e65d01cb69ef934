// RUN: sdy-opt %s -sdy-slice-before-collectives | filecheck %s

// CHECK-LABEL: func.func @columns
func.func @columns(%arg0: tensor<2x8xf32>) -> tensor<7x3xf32> {
  // CHECK-NEXT: %[[PART:.*]] = stablehlo.slice %arg0 [0:2, 1:7:2] : (tensor<2x8xf32>) -> tensor<2x3xf32>
  // CHECK-NEXT: %[[WHOLE:.*]] = "stablehlo.all_gather"(%[[PART]]) {{.*}} : (tensor<2x3xf32>) -> tensor<8x3xf32>
  // CHECK-NEXT: %[[ROWS:.*]] = stablehlo.slice %[[WHOLE]] [0:7, 0:3] : (tensor<8x3xf32>) -> tensor<7x3xf32>
  // CHECK-NEXT: return %[[ROWS]]
  %0 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> : (tensor<2x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.slice %0 [0:7, 1:7:2] : (tensor<8x8xf32>) -> tensor<7x3xf32>
  return %1 : tensor<7x3xf32>
}

// A slice moves before several collectives, also out of a loop.
// CHECK-LABEL: func.func @several
func.func @several(%arg0: tensor<8x4x8xf32>, %arg1: tensor<i32>) -> tensor<16x2x2xf32> {
  // CHECK-NEXT: %[[PART:.*]] = stablehlo.slice %arg0 [0:8, 0:4, 6:8]
  // CHECK-NEXT: %[[SENT:.*]] = "stablehlo.collective_permute"(%[[PART]]) {{.*}} -> tensor<8x4x2xf32>
  // CHECK-NEXT: %[[MOVED:.*]] = "stablehlo.all_to_all"(%[[SENT]]) {{.*}} -> tensor<16x2x2xf32>
  // CHECK-NOT: slice
  %0 = "stablehlo.collective_permute"(%arg0) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8x4x8xf32>) -> tensor<8x4x8xf32>
  %1 = "stablehlo.all_to_all"(%0) <{concat_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, split_count = 2 : i64, split_dimension = 1 : i64}> : (tensor<8x4x8xf32>) -> tensor<16x2x8xf32>
  %begin = stablehlo.constant dense<0.0> : tensor<16x2x2xf32>
  %2:2 = stablehlo.while(%i = %arg1, %x = %begin) : tensor<i32>, tensor<16x2x2xf32>
  cond {
    %3 = stablehlo.compare LT, %i, %arg1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %3 : tensor<i1>
  } do {
    %3 = stablehlo.slice %1 [0:16, 0:2, 6:8] : (tensor<16x2x8xf32>) -> tensor<16x2x2xf32>
    %4 = stablehlo.add %x, %3 : tensor<16x2x2xf32>
    stablehlo.return %i, %4 : tensor<i32>, tensor<16x2x2xf32>
  }
  return %2#1 : tensor<16x2x2xf32>
}

// The slice of columns moves before the collective, with the slice between that removes padding unchanged.
// CHECK-LABEL: func.func @padded
func.func @padded(%arg0: tensor<2x8xf32>) -> tensor<6x2xf32> {
  // CHECK-NEXT: %[[PART:.*]] = stablehlo.slice %arg0 [0:2, 3:6:2] : (tensor<2x8xf32>) -> tensor<2x2xf32>
  // CHECK-NEXT: %[[WHOLE:.*]] = "stablehlo.all_gather"(%[[PART]]) {{.*}} : (tensor<2x2xf32>) -> tensor<8x2xf32>
  // CHECK-NEXT: %[[ROWS:.*]] = stablehlo.slice %[[WHOLE]] [1:7, 0:2] : (tensor<8x2xf32>) -> tensor<6x2xf32>
  // CHECK-NEXT: return %[[ROWS]]
  %0 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> : (tensor<2x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.slice %0 [0:7, 1:8:2] : (tensor<8x8xf32>) -> tensor<7x4xf32>
  %2 = stablehlo.slice %1 [1:7, 1:3] : (tensor<7x4xf32>) -> tensor<6x2xf32>
  return %2 : tensor<6x2xf32>
}

// Results with another use, slices of the rearranged dimension, empty slices and reductions are unchanged.
// CHECK-LABEL: func.func @unchanged
func.func @unchanged(%arg0: tensor<2x8xf32>, %arg1: tensor<2x4xf32>, %arg2: tensor<2x6xf32>) -> (tensor<8x8xf32>, tensor<8x1xf32>, tensor<7x4xf32>, tensor<8x0xf32>, tensor<2x1xf32>) {
  // CHECK: {{all_gather.*-> tensor<8x8xf32>}}
  // CHECK: {{all_gather.*-> tensor<8x4xf32>}}
  // CHECK: {{all_gather.*-> tensor<8x6xf32>}}
  // CHECK: {{\(tensor<2x8xf32>\) -> tensor<2x8xf32>}}
  %0 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> : (tensor<2x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.slice %0 [0:8, 0:1] : (tensor<8x8xf32>) -> tensor<8x1xf32>
  %2 = "stablehlo.all_gather"(%arg1) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> : (tensor<2x4xf32>) -> tensor<8x4xf32>
  %3 = stablehlo.slice %2 [0:7, 0:4] : (tensor<8x4xf32>) -> tensor<7x4xf32>
  %4 = "stablehlo.all_gather"(%arg2) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> : (tensor<2x6xf32>) -> tensor<8x6xf32>
  %5 = stablehlo.slice %4 [0:8, 3:3] : (tensor<8x6xf32>) -> tensor<8x0xf32>
  %6 = "stablehlo.all_reduce"(%arg0) <{replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %8 = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %8 : tensor<f32>
  }) : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %7 = stablehlo.slice %6 [0:2, 0:1] : (tensor<2x8xf32>) -> tensor<2x1xf32>
  return %0, %1, %3, %5, %7 : tensor<8x8xf32>, tensor<8x1xf32>, tensor<7x4xf32>, tensor<8x0xf32>, tensor<2x1xf32>
}
