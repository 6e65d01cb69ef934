// RUN: sdy-opt %s -split-input-file -sdy-rematerialize='memory=400K' | filecheck %s
// RUN: sdy-opt %s -split-input-file -sdy-rematerialize | filecheck %s --check-prefix=OFF
// OFF-NOT: sdy.recomputes

// `%1` would be in memory while `%3` and `%4` are, which need 192K beside the arguments and the result.
// CHECK-LABEL: func.func @product
func.func @product(%x: tensor<128x64xf32>, %w: tensor<64x128xf32>, %big: tensor<64x256xf32>) -> tensor<128x128xf32> {
  // CHECK-NEXT: %[[PRODUCT:.*]] = stablehlo.dot_general %arg0, %arg1
  // CHECK-NEXT: %[[Y:.*]] = stablehlo.tanh %[[PRODUCT]]
  // CHECK-NEXT: stablehlo.dot_general %[[Y]], %arg0
  // CHECK-NEXT: stablehlo.dot_general
  // CHECK-NEXT: %[[LATE:.*]] = stablehlo.dot_general
  // CHECK-NEXT: %[[BARRIER:.*]]:2 = stablehlo.optimization_barrier {sdy.orders} %[[LATE]], %arg0
  // CHECK-NEXT: %[[AGAIN:.*]] = stablehlo.dot_general %[[BARRIER]]#1, %arg1, {{.*}} {sdy.recomputes}
  // CHECK-NEXT: %[[H:.*]] = stablehlo.tanh %[[AGAIN]] {sdy.recomputes}
  // CHECK-NEXT: %[[RESULT:.*]] = stablehlo.dot_general %[[BARRIER]]#0, %[[H]]
  // CHECK-NEXT: return %[[RESULT]]
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<128x64xf32>, tensor<64x128xf32>) -> tensor<128x128xf32>
  %1 = stablehlo.tanh %0 : tensor<128x128xf32>
  %2 = stablehlo.dot_general %1, %x, contracting_dims = [1] x [0] : (tensor<128x128xf32>, tensor<128x64xf32>) -> tensor<128x64xf32>
  %3 = stablehlo.dot_general %2, %big, contracting_dims = [1] x [0] : (tensor<128x64xf32>, tensor<64x256xf32>) -> tensor<128x256xf32>
  %4 = stablehlo.dot_general %3, %3, contracting_dims = [1] x [1] : (tensor<128x256xf32>, tensor<128x256xf32>) -> tensor<128x128xf32>
  %5 = stablehlo.dot_general %4, %1, contracting_dims = [1] x [0] : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
  return %5 : tensor<128x128xf32>
}

// -----

// Collectives are computed again, with channels of their own.
// CHECK-LABEL: func.func @communication
func.func @communication(%x: tensor<128x64xf32>, %w: tensor<64x128xf32>, %big: tensor<64x256xf32>) -> tensor<128x128xf32> {
  // CHECK: "stablehlo.all_reduce"{{.*}}handle = 7
  // CHECK: optimization_barrier
  // CHECK: "stablehlo.all_reduce"{{.*}}handle = 8
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<128x64xf32>, tensor<64x128xf32>) -> tensor<128x128xf32>
  %1 = "stablehlo.all_reduce"(%0) <{channel_handle = #stablehlo.channel_handle<handle = 7, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %sum = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %sum : tensor<f32>
  }) : (tensor<128x128xf32>) -> tensor<128x128xf32>
  %2 = stablehlo.dot_general %1, %x, contracting_dims = [1] x [0] : (tensor<128x128xf32>, tensor<128x64xf32>) -> tensor<128x64xf32>
  %3 = stablehlo.dot_general %2, %big, contracting_dims = [1] x [0] : (tensor<128x64xf32>, tensor<64x256xf32>) -> tensor<128x256xf32>
  %4 = stablehlo.dot_general %3, %3, contracting_dims = [1] x [1] : (tensor<128x256xf32>, tensor<128x256xf32>) -> tensor<128x128xf32>
  %5 = stablehlo.dot_general %4, %1, contracting_dims = [1] x [0] : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
  return %5 : tensor<128x128xf32>
}

// -----

// Custom calls, such as callbacks, are not computed again.
// CHECK-LABEL: func.func @callback
// CHECK-NOT: sdy.recomputes
func.func @callback(%x: tensor<128x64xf32>, %w: tensor<64x128xf32>, %big: tensor<64x256xf32>) -> tensor<128x128xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<128x64xf32>, tensor<64x128xf32>) -> tensor<128x128xf32>
  %1 = stablehlo.custom_call @kernel(%0) : (tensor<128x128xf32>) -> tensor<128x128xf32>
  %2 = stablehlo.dot_general %1, %x, contracting_dims = [1] x [0] : (tensor<128x128xf32>, tensor<128x64xf32>) -> tensor<128x64xf32>
  %3 = stablehlo.dot_general %2, %big, contracting_dims = [1] x [0] : (tensor<128x64xf32>, tensor<64x256xf32>) -> tensor<128x256xf32>
  %4 = stablehlo.dot_general %3, %3, contracting_dims = [1] x [1] : (tensor<128x256xf32>, tensor<128x256xf32>) -> tensor<128x128xf32>
  %5 = stablehlo.dot_general %4, %1, contracting_dims = [1] x [0] : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
  return %5 : tensor<128x128xf32>
}

// -----

// Nor are values that depend on one.
// CHECK-LABEL: func.func @behind_callback
// CHECK-NOT: sdy.recomputes
func.func @behind_callback(%x: tensor<128x64xf32>, %w: tensor<64x128xf32>, %big: tensor<64x256xf32>) -> tensor<128x128xf32> {
  %0 = stablehlo.custom_call @kernel(%w) : (tensor<64x128xf32>) -> tensor<64x128xf32>
  %1 = stablehlo.dot_general %x, %0, contracting_dims = [1] x [0] : (tensor<128x64xf32>, tensor<64x128xf32>) -> tensor<128x128xf32>
  %2 = stablehlo.dot_general %1, %x, contracting_dims = [1] x [0] : (tensor<128x128xf32>, tensor<128x64xf32>) -> tensor<128x64xf32>
  %3 = stablehlo.dot_general %2, %big, contracting_dims = [1] x [0] : (tensor<128x64xf32>, tensor<64x256xf32>) -> tensor<128x256xf32>
  %4 = stablehlo.dot_general %3, %3, contracting_dims = [1] x [1] : (tensor<128x256xf32>, tensor<128x256xf32>) -> tensor<128x128xf32>
  %5 = stablehlo.dot_general %4, %1, contracting_dims = [1] x [0] : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
  return %5 : tensor<128x128xf32>
}

// -----

// Other random numbers would be drawn.
// CHECK-LABEL: func.func @random
// CHECK-NOT: sdy.recomputes
func.func @random(%x: tensor<128x64xf32>, %w: tensor<64x128xf32>, %big: tensor<64x256xf32>) -> tensor<128x128xf32> {
  %low = stablehlo.constant dense<0.0> : tensor<f32>
  %high = stablehlo.constant dense<1.0> : tensor<f32>
  %shape = stablehlo.constant dense<128> : tensor<2xi64>
  %1 = stablehlo.rng %low, %high, %shape, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<128x128xf32>
  %2 = stablehlo.dot_general %1, %x, contracting_dims = [1] x [0] : (tensor<128x128xf32>, tensor<128x64xf32>) -> tensor<128x64xf32>
  %3 = stablehlo.dot_general %2, %big, contracting_dims = [1] x [0] : (tensor<128x64xf32>, tensor<64x256xf32>) -> tensor<128x256xf32>
  %4 = stablehlo.dot_general %3, %3, contracting_dims = [1] x [1] : (tensor<128x256xf32>, tensor<128x256xf32>) -> tensor<128x128xf32>
  %5 = stablehlo.dot_general %4, %1, contracting_dims = [1] x [0] : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
  return %5 : tensor<128x128xf32>
}

// -----

// A value that the kernel at the peak reads is needed there.
// CHECK-LABEL: func.func @needed_at_peak
// CHECK-NOT: sdy.recomputes
func.func @needed_at_peak(%x: tensor<128x64xf32>, %w: tensor<64x128xf32>, %big: tensor<64x256xf32>) -> tensor<128x128xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<128x64xf32>, tensor<64x128xf32>) -> tensor<128x128xf32>
  %1 = stablehlo.tanh %0 : tensor<128x128xf32>
  %2 = stablehlo.dot_general %1, %x, contracting_dims = [1] x [0] : (tensor<128x128xf32>, tensor<128x64xf32>) -> tensor<128x64xf32>
  %3 = stablehlo.dot_general %2, %big, contracting_dims = [1] x [0] : (tensor<128x64xf32>, tensor<64x256xf32>) -> tensor<128x256xf32>
  %4 = stablehlo.custom_call @kernel(%3, %1) : (tensor<128x256xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
  %5 = stablehlo.dot_general %4, %1, contracting_dims = [1] x [0] : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
  return %5 : tensor<128x128xf32>
}
