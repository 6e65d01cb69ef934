// RUN: sdy-opt %s -sdy-reduce-sums-once | filecheck %s

sdy.mesh @mesh = <["x"=2]>

// Partial sums of three terms are added first, one of them transposed, and a replicated term afterwards.
// CHECK-LABEL: func.func @terms
func.func @terms(%arg0: tensor<4x8xf32>, %arg1: tensor<8x4xf32>, %arg2: tensor<4x8xf32>, %arg3: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // CHECK-NEXT: %[[TRANSPOSED:.*]] = stablehlo.transpose %arg1, dims = [1, 0]
  // CHECK-NEXT: %[[TWO:.*]] = stablehlo.add %{{.*}}, %{{.*}} : tensor<4x8xf32>
  // CHECK-NEXT: %[[THREE:.*]] = stablehlo.add %[[TWO]], %{{.*}} : tensor<4x8xf32>
  // CHECK-NEXT: %[[SUM:.*]] = "stablehlo.all_reduce"(%[[THREE]])
  // CHECK:      %[[ALL:.*]] = stablehlo.add %arg3, %[[SUM]]
  // CHECK-NEXT: return %[[ALL]]
  %0 = "stablehlo.all_reduce"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
  ^bb0(%lhs: tensor<f32>, %rhs: tensor<f32>):
    %8 = stablehlo.add %lhs, %rhs : tensor<f32>
    stablehlo.return %8 : tensor<f32>
  }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = "stablehlo.all_reduce"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
  ^bb0(%lhs: tensor<f32>, %rhs: tensor<f32>):
    %8 = stablehlo.add %lhs, %rhs : tensor<f32>
    stablehlo.return %8 : tensor<f32>
  }) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = "stablehlo.all_reduce"(%arg2) <{channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
  ^bb0(%lhs: tensor<f32>, %rhs: tensor<f32>):
    %8 = stablehlo.add %lhs, %rhs : tensor<f32>
    stablehlo.return %8 : tensor<f32>
  }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = stablehlo.transpose %1, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %4 = stablehlo.add %0, %arg3 : tensor<4x8xf32>
  %5 = stablehlo.add %4, %3 : tensor<4x8xf32>
  %6 = stablehlo.add %5, %2 : tensor<4x8xf32>
  return %6 : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @scattered
func.func @scattered(%arg0: tensor<4x8xf32>, %arg1: tensor<4x8xf32>) -> tensor<2x8xf32> {
  // CHECK-NEXT: %[[TWO:.*]] = stablehlo.add %arg0, %arg1 : tensor<4x8xf32>
  // CHECK-NEXT: %[[ROWS:.*]] = "stablehlo.reduce_scatter"(%[[TWO]])
  // CHECK:      return %[[ROWS]]
  %0 = "stablehlo.reduce_scatter"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, scatter_dimension = 0 : i64, use_global_device_ids}> ({
  ^bb0(%lhs: tensor<f32>, %rhs: tensor<f32>):
    %8 = stablehlo.add %lhs, %rhs : tensor<f32>
    stablehlo.return %8 : tensor<f32>
  }) : (tensor<4x8xf32>) -> tensor<2x8xf32>
  %1 = "stablehlo.reduce_scatter"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, scatter_dimension = 0 : i64, use_global_device_ids}> ({
  ^bb0(%lhs: tensor<f32>, %rhs: tensor<f32>):
    %8 = stablehlo.add %lhs, %rhs : tensor<f32>
    stablehlo.return %8 : tensor<f32>
  }) : (tensor<4x8xf32>) -> tensor<2x8xf32>
  %2 = stablehlo.add %0, %1 : tensor<2x8xf32>
  return %2 : tensor<2x8xf32>
}

// Unchanged: a maximum over devices, another use, and twice the bytes after a cast.
// CHECK-LABEL: func.func @others
func.func @others(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>, %arg2: tensor<8xbf16>, %arg3: tensor<8xbf16>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  // CHECK-COUNT-6: stablehlo.all_reduce
  // CHECK: return
  %0 = "stablehlo.all_reduce"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
  ^bb0(%lhs: tensor<f32>, %rhs: tensor<f32>):
    %12 = stablehlo.maximum %lhs, %rhs : tensor<f32>
    stablehlo.return %12 : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = "stablehlo.all_reduce"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
  ^bb0(%lhs: tensor<f32>, %rhs: tensor<f32>):
    %12 = stablehlo.add %lhs, %rhs : tensor<f32>
    stablehlo.return %12 : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = stablehlo.add %0, %1 : tensor<8xf32>
  %3 = "stablehlo.all_reduce"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
  ^bb0(%lhs: tensor<f32>, %rhs: tensor<f32>):
    %12 = stablehlo.add %lhs, %rhs : tensor<f32>
    stablehlo.return %12 : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  %4 = "stablehlo.all_reduce"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 4, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
  ^bb0(%lhs: tensor<f32>, %rhs: tensor<f32>):
    %12 = stablehlo.add %lhs, %rhs : tensor<f32>
    stablehlo.return %12 : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  %5 = stablehlo.add %3, %4 : tensor<8xf32>
  %6 = "stablehlo.all_reduce"(%arg2) <{channel_handle = #stablehlo.channel_handle<handle = 5, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
  ^bb0(%lhs: tensor<bf16>, %rhs: tensor<bf16>):
    %12 = stablehlo.add %lhs, %rhs : tensor<bf16>
    stablehlo.return %12 : tensor<bf16>
  }) : (tensor<8xbf16>) -> tensor<8xbf16>
  %7 = "stablehlo.all_reduce"(%arg3) <{channel_handle = #stablehlo.channel_handle<handle = 6, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
  ^bb0(%lhs: tensor<bf16>, %rhs: tensor<bf16>):
    %12 = stablehlo.add %lhs, %rhs : tensor<bf16>
    stablehlo.return %12 : tensor<bf16>
  }) : (tensor<8xbf16>) -> tensor<8xbf16>
  %8 = stablehlo.convert %6 : (tensor<8xbf16>) -> tensor<8xf32>
  %9 = stablehlo.convert %7 : (tensor<8xbf16>) -> tensor<8xf32>
  %10 = stablehlo.add %8, %9 : tensor<8xf32>
  return %2, %5, %3, %10 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
