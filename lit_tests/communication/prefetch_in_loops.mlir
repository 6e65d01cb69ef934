// RUN: sdy-opt %s -split-input-file -sdy-prefetch-in-loops=hardware=%S/not_pipelined.toml | filecheck %s
// RUN: sdy-opt %s -split-input-file -sdy-prefetch-in-loops=hardware=tpu-v5p | filecheck %s --check-prefix=NONE
// RUN: sdy-opt %s -split-input-file -sdy-prefetch-in-loops | filecheck %s --check-prefix=NONE

// Layers whose parameters are sharded over two devices.
sdy.mesh @mesh = <["x"=2]>

// CHECK-LABEL: func.func @main
// CHECK: %[[ZERO:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK: %[[FIRST:.*]] = stablehlo.dynamic_slice %arg0, %[[ZERO]], %[[ZERO]], %[[ZERO]], sizes = [1, 2048, 4096]
// CHECK-NEXT: %[[ROWS:.*]] = stablehlo.reshape %[[FIRST]]
// CHECK-NEXT: %[[GATHERED:.*]] = "stablehlo.all_gather"(%[[ROWS]])
// CHECK-SAME: channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>
// CHECK: stablehlo.while(%[[I:.*]] = %[[ZERO]], %[[H:.*]] = %arg1, %[[W:.*]] = %[[GATHERED]])
// CHECK: do {
// CHECK: %[[NEXT:.*]] = stablehlo.add %[[I]], %{{.*}} : tensor<i32>
// CHECK-NEXT: %[[SLICE:.*]] = stablehlo.dynamic_slice %arg0, %[[NEXT]], %[[ZERO]], %[[ZERO]]
// CHECK-NEXT: %[[NEXT_ROWS:.*]] = stablehlo.reshape %[[SLICE]]
// CHECK-NEXT: %[[THEN:.*]] = "stablehlo.all_gather"(%[[NEXT_ROWS]])
// CHECK-SAME: channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>
// CHECK-NOT: stablehlo.all_gather
// CHECK: %[[DOT:.*]] = stablehlo.dot_general %[[H]], %[[W]]
// CHECK: stablehlo.return %{{.*}}, %[[DOT]], %[[THEN]]

// NONE-LABEL: func.func @main
// NONE: stablehlo.while(%[[I:.*]] = %{{.*}}, %[[H:.*]] = %arg1) :
// NONE: do {
// NONE: stablehlo.all_gather
// NONE-NOT: stablehlo.all_gather
func.func @main(%arg0: tensor<8x2048x4096xbf16>, %arg1: tensor<8192x4096xbf16>) -> tensor<8192x4096xbf16> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %eight = stablehlo.constant dense<8> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %h = %arg1) : tensor<i32>, tensor<8192x4096xbf16>
  cond {
    %1 = stablehlo.compare LT, %i, %eight : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.dynamic_slice %arg0, %i, %zero, %zero, sizes = [1, 2048, 4096] : (tensor<8x2048x4096xbf16>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2048x4096xbf16>
    %2 = stablehlo.reshape %1 : (tensor<1x2048x4096xbf16>) -> tensor<2048x4096xbf16>
    %3 = "stablehlo.all_gather"(%2) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> : (tensor<2048x4096xbf16>) -> tensor<4096x4096xbf16>
    %4 = stablehlo.dot_general %h, %3, contracting_dims = [1] x [0] : (tensor<8192x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<8192x4096xbf16>
    %5 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %5, %4 : tensor<i32>, tensor<8192x4096xbf16>
  }
  return %0#1 : tensor<8192x4096xbf16>
}
