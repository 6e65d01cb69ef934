// RUN: sdy-opt %s -split-input-file -sdy-rematerialize='memory=400K' | filecheck %s
// RUN: sdy-opt %s -split-input-file -sdy-rematerialize='memory=400K hardware=h100' | filecheck %s --check-prefix=HOST
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
  // CHECK-NEXT: %[[BARRIER:.*]]:3 = stablehlo.optimization_barrier {sdy.orders} %[[LATE]], %arg0, %arg1
  // CHECK-NEXT: %[[AGAIN:.*]] = stablehlo.dot_general %[[BARRIER]]#1, %[[BARRIER]]#2, {{.*}} {sdy.recomputes}
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

// Custom calls, such as callbacks, are not computed again. Their results are moved to the host, over a link to it.
// CHECK-LABEL: func.func @callback
// CHECK-NOT: sdy.recomputes
// CHECK-NOT: annotate_device_placement
// HOST-LABEL: func.func @callback
// HOST: %[[Y:.*]] = stablehlo.custom_call @kernel
// HOST: stablehlo.dot_general %[[Y]], %arg0
// HOST: %[[ON_HOST:.*]] = stablehlo.custom_call @annotate_device_placement(%[[Y]]) {{.*}}"pinned_host"
// HOST: %[[LATE:.*]] = stablehlo.dot_general
// HOST-NEXT: %[[BARRIER:.*]]:2 = stablehlo.optimization_barrier {sdy.orders} %[[ON_HOST]], %[[LATE]]
// HOST-NEXT: %[[BACK:.*]] = stablehlo.custom_call @annotate_device_placement(%[[BARRIER]]#0) {{.*}}"device"
// HOST-NEXT: stablehlo.dot_general %[[BARRIER]]#1, %[[BACK]]
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

// -----

// The second loop reads the elements in reverse; `%h`, which the first one stacks, follows from `%x` and `%w`.
// CHECK-LABEL: func.func @stacks
func.func @stacks(%x: tensor<512x16xf32>, %w: tensor<8x16x16xf32>) -> tensor<512x16xf32> {
  // CHECK: %[[STACKED:.*]]:4 = stablehlo.while
  // CHECK: stablehlo.tanh
  // CHECK: %{{.*}}:3 = stablehlo.while
  // CHECK: %[[FROM_END:.*]] = stablehlo.subtract
  // CHECK: stablehlo.dynamic_slice %[[STACKED]]#3, %[[FROM_END]]
  // CHECK: stablehlo.dot_general {{.*}} {sdy.recomputes}
  // CHECK: stablehlo.tanh {{.*}} {sdy.recomputes}
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %f = stablehlo.constant dense<0.0> : tensor<f32>
  %empty = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<8x512x16xf32>
  %first:5 = stablehlo.while(%i = %zero, %ws = %w, %y = %x, %xs = %empty, %hs = %empty) : tensor<i32>, tensor<8x16x16xf32>, tensor<512x16xf32>, tensor<8x512x16xf32>, tensor<8x512x16xf32>
  cond {
    %n = stablehlo.constant dense<8> : tensor<i32>
    %more = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %0 = stablehlo.dynamic_slice %ws, %i, %c, %c, sizes = [1, 16, 16] : (tensor<8x16x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x16xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x16x16xf32>) -> tensor<16x16xf32>
    %2 = stablehlo.dot_general %y, %1, contracting_dims = [1] x [0] : (tensor<512x16xf32>, tensor<16x16xf32>) -> tensor<512x16xf32>
    %h = stablehlo.tanh %2 : tensor<512x16xf32>
    %3 = stablehlo.add %y, %h : tensor<512x16xf32>
    %4 = stablehlo.reshape %y : (tensor<512x16xf32>) -> tensor<1x512x16xf32>
    %5 = stablehlo.dynamic_update_slice %xs, %4, %i, %c, %c : (tensor<8x512x16xf32>, tensor<1x512x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<8x512x16xf32>
    %6 = stablehlo.reshape %h : (tensor<512x16xf32>) -> tensor<1x512x16xf32>
    %7 = stablehlo.dynamic_update_slice %hs, %6, %i, %c, %c : (tensor<8x512x16xf32>, tensor<1x512x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<8x512x16xf32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %ws, %3, %5, %7 : tensor<i32>, tensor<8x16x16xf32>, tensor<512x16xf32>, tensor<8x512x16xf32>, tensor<8x512x16xf32>
  }
  %second:4 = stablehlo.while(%i = %zero, %xs = %first#3, %hs = %first#4, %y = %first#2) : tensor<i32>, tensor<8x512x16xf32>, tensor<8x512x16xf32>, tensor<512x16xf32>
  cond {
    %n = stablehlo.constant dense<8> : tensor<i32>
    %more = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %last = stablehlo.constant dense<7> : tensor<i32>
    %j = stablehlo.subtract %last, %i : tensor<i32>
    %0 = stablehlo.dynamic_slice %hs, %j, %c, %c, sizes = [1, 512, 16] : (tensor<8x512x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x512x16xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x512x16xf32>) -> tensor<512x16xf32>
    %2 = stablehlo.multiply %y, %1 : tensor<512x16xf32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %xs, %hs, %2 : tensor<i32>, tensor<8x512x16xf32>, tensor<8x512x16xf32>, tensor<512x16xf32>
  }
  return %second#3 : tensor<512x16xf32>
}

// -----

// The first loop does not write the elements in turn.
// CHECK-LABEL: func.func @overwritten_stack
// CHECK-NOT: sdy.recomputes
func.func @overwritten_stack(%x: tensor<512x16xf32>, %w: tensor<8x16x16xf32>) -> tensor<512x16xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %f = stablehlo.constant dense<0.0> : tensor<f32>
  %empty = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<8x512x16xf32>
  %first:5 = stablehlo.while(%i = %zero, %ws = %w, %y = %x, %xs = %empty, %hs = %empty) : tensor<i32>, tensor<8x16x16xf32>, tensor<512x16xf32>, tensor<8x512x16xf32>, tensor<8x512x16xf32>
  cond {
    %n = stablehlo.constant dense<8> : tensor<i32>
    %more = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %0 = stablehlo.dynamic_slice %ws, %i, %c, %c, sizes = [1, 16, 16] : (tensor<8x16x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x16xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x16x16xf32>) -> tensor<16x16xf32>
    %2 = stablehlo.dot_general %y, %1, contracting_dims = [1] x [0] : (tensor<512x16xf32>, tensor<16x16xf32>) -> tensor<512x16xf32>
    %h = stablehlo.tanh %2 : tensor<512x16xf32>
    %3 = stablehlo.add %y, %h : tensor<512x16xf32>
    %4 = stablehlo.reshape %y : (tensor<512x16xf32>) -> tensor<1x512x16xf32>
    %5 = stablehlo.dynamic_update_slice %xs, %4, %i, %c, %c : (tensor<8x512x16xf32>, tensor<1x512x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<8x512x16xf32>
    %6 = stablehlo.reshape %h : (tensor<512x16xf32>) -> tensor<1x512x16xf32>
    %7 = stablehlo.dynamic_update_slice %hs, %6, %c, %c, %c : (tensor<8x512x16xf32>, tensor<1x512x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<8x512x16xf32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %ws, %3, %5, %7 : tensor<i32>, tensor<8x16x16xf32>, tensor<512x16xf32>, tensor<8x512x16xf32>, tensor<8x512x16xf32>
  }
  %second:4 = stablehlo.while(%i = %zero, %xs = %first#3, %hs = %first#4, %y = %first#2) : tensor<i32>, tensor<8x512x16xf32>, tensor<8x512x16xf32>, tensor<512x16xf32>
  cond {
    %n = stablehlo.constant dense<8> : tensor<i32>
    %more = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %last = stablehlo.constant dense<7> : tensor<i32>
    %j = stablehlo.subtract %last, %i : tensor<i32>
    %0 = stablehlo.dynamic_slice %hs, %j, %c, %c, sizes = [1, 512, 16] : (tensor<8x512x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x512x16xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x512x16xf32>) -> tensor<512x16xf32>
    %2 = stablehlo.multiply %y, %1 : tensor<512x16xf32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %xs, %hs, %2 : tensor<i32>, tensor<8x512x16xf32>, tensor<8x512x16xf32>, tensor<512x16xf32>
  }
  return %second#3 : tensor<512x16xf32>
}
