// RUN: sdy-opt %s -split-input-file -sdy-window-products=hardware=h100 | filecheck %s
// RUN: sdy-opt %s -split-input-file -sdy-window-products | filecheck %s --check-prefix=NONE

// Devices multiply their own rows first, then those that arrive from the next device.
// NONE-NOT: collective_permute
sdy.mesh @mesh = <["x"=2]>
// CHECK-LABEL: func.func @gathered
func.func @gathered(%arg0: tensor<4096x8192xbf16>, %arg1: tensor<8192x2048xbf16>) -> tensor<8192x2048xbf16> {
  // CHECK-NEXT: %[[NEXT:.*]] = "stablehlo.collective_permute"(%arg0)
  // CHECK-SAME: dense<[[0, 1], [1, 0]]>
  // CHECK:      %[[ZEROS:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<8192x2048xbf16>
  // CHECK:      stablehlo.constant dense<[0, 4096]>
  // CHECK:      %[[OWN:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<4096x8192xbf16>, tensor<8192x2048xbf16>) -> tensor<4096x2048xbf16>
  // CHECK:      %[[HALF:.*]] = stablehlo.dynamic_update_slice %[[ZEROS]], %[[OWN]]
  // CHECK:      stablehlo.constant dense<[4096, 0]>
  // CHECK:      %[[OTHER:.*]] = stablehlo.dot_general %[[NEXT]], %arg1
  // CHECK:      %[[WHOLE:.*]] = stablehlo.dynamic_update_slice %[[HALF]], %[[OTHER]]
  // CHECK-NEXT: return %[[WHOLE]]
  %0 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> : (tensor<4096x8192xbf16>) -> tensor<8192x8192xbf16>
  %1 = stablehlo.dot_general %0, %arg1, contracting_dims = [1] x [0] : (tensor<8192x8192xbf16>, tensor<8192x2048xbf16>) -> tensor<8192x2048xbf16>
  return %1 : tensor<8192x2048xbf16>
}

// -----

// A sum over the gathered dimension is accumulated in 32 bits.
sdy.mesh @mesh = <["x"=2]>
// CHECK-LABEL: func.func @summed
func.func @summed(%arg0: tensor<2048x8192xbf16>, %arg1: tensor<4096x8192xbf16>) -> tensor<2048x8192xbf16> {
  // CHECK-NEXT: %[[NEXT:.*]] = "stablehlo.collective_permute"(%arg1)
  // CHECK:      %[[COLUMNS:.*]] = stablehlo.dynamic_slice %arg0
  // CHECK-SAME: sizes = [2048, 4096]
  // CHECK:      %[[OWN:.*]] = stablehlo.dot_general %[[COLUMNS]], %arg1, contracting_dims = [1] x [0] : (tensor<2048x4096xbf16>, tensor<4096x8192xbf16>) -> tensor<2048x8192xf32>
  // CHECK:      %[[OTHERS:.*]] = stablehlo.dot_general %{{.*}}, %[[NEXT]]
  // CHECK:      %[[SUM:.*]] = stablehlo.add %[[OWN]], %[[OTHERS]] : tensor<2048x8192xf32>
  // CHECK-NEXT: stablehlo.convert %[[SUM]]
  %0 = "stablehlo.all_gather"(%arg1) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> : (tensor<4096x8192xbf16>) -> tensor<8192x8192xbf16>
  %1 = stablehlo.dot_general %arg0, %0, contracting_dims = [1] x [0] : (tensor<2048x8192xbf16>, tensor<8192x8192xbf16>) -> tensor<2048x8192xbf16>
  return %1 : tensor<2048x8192xbf16>
}

// -----

// Partial sums of the other device's rows move while its own are computed.
sdy.mesh @mesh = <["x"=2]>
// CHECK-LABEL: func.func @scattered
func.func @scattered(%arg0: tensor<8192x8192xbf16>, %arg1: tensor<8192x8192xbf16>) -> tensor<4096x8192xbf16> {
  // CHECK:      %[[ROWS:.*]] = stablehlo.dynamic_slice %arg0
  // CHECK-NEXT: %[[FIRST:.*]] = stablehlo.dot_general %[[ROWS]], %arg1
  // CHECK-NEXT: %[[ARRIVED:.*]] = "stablehlo.collective_permute"(%[[FIRST]])
  // CHECK:      %[[LAST:.*]] = stablehlo.dot_general
  // CHECK-NEXT: %[[SUM:.*]] = stablehlo.add %[[ARRIVED]], %[[LAST]]
  // CHECK-NEXT: return %[[SUM]]
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<8192x8192xbf16>, tensor<8192x8192xbf16>) -> tensor<8192x8192xbf16>
  %1 = "stablehlo.reduce_scatter"(%0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, scatter_dimension = 0 : i64, use_global_device_ids}> ({
  ^bb0(%lhs: tensor<bf16>, %rhs: tensor<bf16>):
    %2 = stablehlo.add %lhs, %rhs : tensor<bf16>
    stablehlo.return %2 : tensor<bf16>
  }) : (tensor<8192x8192xbf16>) -> tensor<4096x8192xbf16>
  return %1 : tensor<4096x8192xbf16>
}

// -----

// Unchanged: a maximum, partial sums that are read otherwise, and a product that is over before a message arrives.
sdy.mesh @mesh = <["x"=2]>
// CHECK-LABEL: func.func @others
func.func @others(%arg0: tensor<8192x8192xbf16>, %arg1: tensor<8192x8192xbf16>, %arg2: tensor<8x64xbf16>, %arg3: tensor<64x8xbf16>) -> (tensor<4096x8192xbf16>, tensor<8192x8192xbf16>, tensor<4096x8192xbf16>, tensor<16x8xbf16>) {
  // CHECK-NOT: collective_permute
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<8192x8192xbf16>, tensor<8192x8192xbf16>) -> tensor<8192x8192xbf16>
  %1 = "stablehlo.reduce_scatter"(%0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, scatter_dimension = 0 : i64, use_global_device_ids}> ({
  ^bb0(%lhs: tensor<bf16>, %rhs: tensor<bf16>):
    %6 = stablehlo.add %lhs, %rhs : tensor<bf16>
    stablehlo.return %6 : tensor<bf16>
  }) : (tensor<8192x8192xbf16>) -> tensor<4096x8192xbf16>
  %2 = stablehlo.dot_general %arg1, %arg0, contracting_dims = [1] x [0] : (tensor<8192x8192xbf16>, tensor<8192x8192xbf16>) -> tensor<8192x8192xbf16>
  %3 = "stablehlo.reduce_scatter"(%2) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, scatter_dimension = 0 : i64, use_global_device_ids}> ({
  ^bb0(%lhs: tensor<bf16>, %rhs: tensor<bf16>):
    %6 = stablehlo.maximum %lhs, %rhs : tensor<bf16>
    stablehlo.return %6 : tensor<bf16>
  }) : (tensor<8192x8192xbf16>) -> tensor<4096x8192xbf16>
  %4 = "stablehlo.all_gather"(%arg2) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> : (tensor<8x64xbf16>) -> tensor<16x64xbf16>
  %5 = stablehlo.dot_general %4, %arg3, contracting_dims = [1] x [0] : (tensor<16x64xbf16>, tensor<64x8xbf16>) -> tensor<16x8xbf16>
  return %1, %0, %3, %5 : tensor<4096x8192xbf16>, tensor<8192x8192xbf16>, tensor<4096x8192xbf16>, tensor<16x8xbf16>
}
