// RUN: sdy-opt %s -sdy-sum-after-loops | filecheck %s

// The gradients of four microbatches, with a cast and a transpose.
// CHECK-LABEL: func.func @gradients
func.func @gradients(%arg0: tensor<8x4xbf16>) -> tensor<4x8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %four = stablehlo.constant dense<4> : tensor<i32>
  %number = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.broadcast_in_dim %number, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
  // CHECK: %[[LOOP:.*]]:2 = stablehlo.while
  // CHECK-SAME: (%{{.*}} = %{{.*}}, %[[TOTAL:.*]] = %{{.*}})
  // CHECK: %[[PARTIAL:.*]] = stablehlo.multiply
  // CHECK-NEXT: %[[WIDE:.*]] = stablehlo.convert %[[PARTIAL]] : (tensor<8x4xbf16>) -> tensor<8x4xf32>
  // CHECK-NEXT: %[[GRADIENT:.*]] = stablehlo.transpose %[[WIDE]], dims = [1, 0]
  // CHECK-NEXT: %[[SUM:.*]] = stablehlo.add %[[TOTAL]], %[[GRADIENT]] : tensor<4x8xf32>
  // CHECK: stablehlo.return %{{.*}}, %[[SUM]]
  // CHECK: %[[REDUCED:.*]] = "stablehlo.all_reduce"(%[[LOOP]]#1)
  // CHECK: ^bb0(%{{.*}}: tensor<f32>, %{{.*}}: tensor<f32>):
  // CHECK: return %[[REDUCED]] : tensor<4x8xf32>
  %0:2 = stablehlo.while(%i = %zero, %total = %zeros) : tensor<i32>, tensor<4x8xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %four : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.multiply %arg0, %arg0 : tensor<8x4xbf16>
    %2 = "stablehlo.all_reduce"(%1) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
      %s = stablehlo.add %a, %b : tensor<bf16>
      stablehlo.return %s : tensor<bf16>
    }) : (tensor<8x4xbf16>) -> tensor<8x4xbf16>
    %3 = stablehlo.convert %2 : (tensor<8x4xbf16>) -> tensor<8x4xf32>
    %4 = stablehlo.transpose %3, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
    %5 = stablehlo.add %total, %4 : tensor<4x8xf32>
    %6 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %6, %5 : tensor<i32>, tensor<4x8xf32>
  }
  return %0#1 : tensor<4x8xf32>
}

// Unchanged: one iteration, and two where the cast quadruples the bytes.
// CHECK-LABEL: func.func @short
func.func @short(%arg0: tensor<8xbf16>) -> (tensor<8xf32>, tensor<8xf64>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %zeros = stablehlo.constant dense<0.0> : tensor<8xf32>
  %wide = stablehlo.constant dense<0.0> : tensor<8xf64>
  // CHECK: stablehlo.while
  // CHECK: all_reduce
  // CHECK: stablehlo.return %{{.*}}, %{{.*}} : tensor<i32>, tensor<8xf32>
  // CHECK: stablehlo.while
  // CHECK: all_reduce
  // CHECK: stablehlo.return %{{.*}}, %{{.*}} : tensor<i32>, tensor<8xf64>
  // CHECK-NOT: all_reduce
  %0:2 = stablehlo.while(%i = %zero, %total = %zeros) : tensor<i32>, tensor<8xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = "stablehlo.all_reduce"(%arg0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
      %s = stablehlo.add %a, %b : tensor<bf16>
      stablehlo.return %s : tensor<bf16>
    }) : (tensor<8xbf16>) -> tensor<8xbf16>
    %2 = stablehlo.convert %1 : (tensor<8xbf16>) -> tensor<8xf32>
    %3 = stablehlo.add %total, %2 : tensor<8xf32>
    %4 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %4, %3 : tensor<i32>, tensor<8xf32>
  }
  %5:2 = stablehlo.while(%i = %zero, %total = %wide) : tensor<i32>, tensor<8xf64>
  cond {
    %1 = stablehlo.compare LT, %i, %two : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = "stablehlo.all_reduce"(%arg0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
      %s = stablehlo.add %a, %b : tensor<bf16>
      stablehlo.return %s : tensor<bf16>
    }) : (tensor<8xbf16>) -> tensor<8xbf16>
    %2 = stablehlo.convert %1 : (tensor<8xbf16>) -> tensor<8xf64>
    %3 = stablehlo.add %total, %2 : tensor<8xf64>
    %4 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %4, %3 : tensor<i32>, tensor<8xf64>
  }
  return %0#1, %5#1 : tensor<8xf32>, tensor<8xf64>
}

// The likelihoods of eight steps, which are stacked: the place of each is a function of the counter.
// CHECK-LABEL: func.func @stacked
func.func @stacked(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %eight = stablehlo.constant dense<8> : tensor<i32>
  %zeros = stablehlo.constant dense<0.0> : tensor<8xf32>
  // CHECK: stablehlo.while
  // CHECK-NOT: all_reduce
  // CHECK: stablehlo.return %{{.*}}, %{{.*}} : tensor<i32>, tensor<8xf32>
  // CHECK: "stablehlo.all_reduce"(%{{.*}}#1)
  %0:2 = stablehlo.while(%i = %zero, %rows = %zeros) : tensor<i32>, tensor<8xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %eight : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.slice %arg0 [0:1] : (tensor<8xf32>) -> tensor<1xf32>
    %2 = stablehlo.reshape %1 : (tensor<1xf32>) -> tensor<f32>
    %3 = "stablehlo.all_reduce"(%2) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<f32>) -> tensor<f32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %5 = stablehlo.add %i, %one : tensor<i32>
    %6 = stablehlo.dynamic_update_slice %rows, %4, %i : (tensor<8xf32>, tensor<1xf32>, tensor<i32>) -> tensor<8xf32>
    stablehlo.return %5, %6 : tensor<i32>, tensor<8xf32>
  }
  return %0#1 : tensor<8xf32>
}

// Unchanged: each device writes to its own place.
// CHECK-LABEL: func.func @own_places
func.func @own_places(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %eight = stablehlo.constant dense<8> : tensor<i32>
  %zeros = stablehlo.constant dense<0.0> : tensor<8xf32>
  // CHECK: stablehlo.while
  // CHECK: all_reduce
  // CHECK: stablehlo.return %{{.*}}, %{{.*}} : tensor<i32>, tensor<8xf32>
  // CHECK-NOT: all_reduce
  %0:2 = stablehlo.while(%i = %zero, %rows = %zeros) : tensor<i32>, tensor<8xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %eight : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.slice %arg0 [0:1] : (tensor<8xf32>) -> tensor<1xf32>
    %2 = "stablehlo.all_reduce"(%1) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<1xf32>) -> tensor<1xf32>
    %3 = stablehlo.partition_id : tensor<ui32>
    %4 = stablehlo.convert %3 : (tensor<ui32>) -> tensor<i32>
    %5 = stablehlo.add %i, %one : tensor<i32>
    %6 = stablehlo.dynamic_update_slice %rows, %2, %4 : (tensor<8xf32>, tensor<1xf32>, tensor<i32>) -> tensor<8xf32>
    stablehlo.return %5, %6 : tensor<i32>, tensor<8xf32>
  }
  return %0#1 : tensor<8xf32>
}
