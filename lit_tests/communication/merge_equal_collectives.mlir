// RUN: sdy-opt %s -sdy-merge-equal-collectives | filecheck %s

// Operations that become unused are erased; other duplicates stay.
// CHECK-LABEL: func.func @gathers
func.func @gathers(%arg0: tensor<2x8xf32>) -> (tensor<8x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) {
  // CHECK-NEXT: %[[A:.*]] = stablehlo.tanh %arg0
  // CHECK-NEXT: %[[GATHERED:.*]] = "stablehlo.all_gather"(%[[A]])
  // CHECK-NEXT: %[[C:.*]] = stablehlo.negate %[[A]]
  // CHECK-NEXT: %[[D:.*]] = stablehlo.negate %[[A]]
  // CHECK-NEXT: %[[SUM:.*]] = stablehlo.add %[[GATHERED]], %[[GATHERED]]
  // CHECK-NEXT: return %[[SUM]], %[[C]], %[[D]]
  %a = stablehlo.tanh %arg0 : tensor<2x8xf32>
  %0 = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> : (tensor<2x8xf32>) -> tensor<8x8xf32>
  %b = stablehlo.tanh %arg0 : tensor<2x8xf32>
  %1 = "stablehlo.all_gather"(%b) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> : (tensor<2x8xf32>) -> tensor<8x8xf32>
  %c = stablehlo.negate %a : tensor<2x8xf32>
  %d = stablehlo.negate %a : tensor<2x8xf32>
  %2 = stablehlo.add %0, %1 : tensor<8x8xf32>
  return %2, %c, %d : tensor<8x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>
}

// All-reduces with different bodies stay; two sums are merged, whatever the names in their bodies.
// CHECK-LABEL: func.func @reductions
func.func @reductions(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: %[[SUM:.*]] = "stablehlo.all_reduce"(%arg0)
  // CHECK: stablehlo.add
  // CHECK: %[[MAX:.*]] = "stablehlo.all_reduce"(%arg0)
  // CHECK: stablehlo.maximum
  // CHECK-NOT: all_reduce
  // CHECK: %[[FIRST:.*]] = stablehlo.subtract %[[SUM]], %[[MAX]]
  // CHECK-NEXT: stablehlo.multiply %[[FIRST]], %[[SUM]]
  %0 = "stablehlo.all_reduce"(%arg0) <{replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %3 = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %3 : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = "stablehlo.all_reduce"(%arg0) <{replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %3 = stablehlo.maximum %x, %y : tensor<f32>
    stablehlo.return %3 : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = "stablehlo.all_reduce"(%arg0) <{replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %3 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %3 : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  %4 = stablehlo.subtract %0, %1 : tensor<8xf32>
  %5 = stablehlo.multiply %4, %2 : tensor<8xf32>
  return %5 : tensor<8xf32>
}

// Permutes with different device pairs stay.
// CHECK-LABEL: func.func @others
func.func @others(%arg0: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK-COUNT-2: collective_permute
  %0 = "stablehlo.collective_permute"(%arg0) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8xf32>) -> tensor<8xf32>
  %1 = "stablehlo.collective_permute"(%arg0) <{source_target_pairs = dense<[[1, 0]]> : tensor<1x2xi64>}> : (tensor<8xf32>) -> tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

// A collective in a loop is merged with one before the loop, also of a loop-carried value that never changes. One in a
// branch dominates neither the other branch nor the code after both.
// CHECK-LABEL: func.func @regions
func.func @regions(%arg0: tensor<2xf32>, %arg1: tensor<8xf32>, %arg2: tensor<i1>) -> tensor<8xf32> {
  // CHECK: %[[BEFORE:.*]] = "stablehlo.all_gather"(%arg0)
  // CHECK: stablehlo.while
  // CHECK-NOT: all_gather
  // CHECK: %[[SUM:.*]] = stablehlo.add %{{.*}}, %[[BEFORE]]
  // CHECK-COUNT-3: "stablehlo.collective_permute"(%arg1)
  %0 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> : (tensor<2xf32>) -> tensor<8xf32>
  %1:2 = stablehlo.while(%part = %arg0, %sum = %0) : tensor<2xf32>, tensor<8xf32>
  cond {
    stablehlo.return %arg2 : tensor<i1>
  } do {
    %5 = "stablehlo.all_gather"(%part) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> : (tensor<2xf32>) -> tensor<8xf32>
    %6 = stablehlo.add %sum, %5 : tensor<8xf32>
    stablehlo.return %part, %6 : tensor<2xf32>, tensor<8xf32>
  }
  %2 = "stablehlo.if"(%arg2) ({
    %5 = "stablehlo.collective_permute"(%arg1) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8xf32>) -> tensor<8xf32>
    stablehlo.return %5 : tensor<8xf32>
  }, {
    %5 = "stablehlo.collective_permute"(%arg1) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8xf32>) -> tensor<8xf32>
    stablehlo.return %5 : tensor<8xf32>
  }) : (tensor<i1>) -> tensor<8xf32>
  %3 = "stablehlo.collective_permute"(%arg1) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8xf32>) -> tensor<8xf32>
  %4 = stablehlo.add %2, %3 : tensor<8xf32>
  %5 = stablehlo.add %4, %1#1 : tensor<8xf32>
  return %5 : tensor<8xf32>
}

// Not merged: collectives of random numbers, which differ, and collectives of an optimization barrier.
// CHECK-LABEL: func.func @not_equal
func.func @not_equal(%arg0: tensor<8xf32>, %arg1: tensor<f32>, %arg2: tensor<1xi64>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  // CHECK-COUNT-4: collective_permute
  %a = stablehlo.rng %arg1, %arg1, %arg2, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<8xf32>
  %b = stablehlo.rng %arg1, %arg1, %arg2, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<8xf32>
  %c = stablehlo.optimization_barrier %arg0 : tensor<8xf32>
  %0 = "stablehlo.collective_permute"(%a) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8xf32>) -> tensor<8xf32>
  %1 = "stablehlo.collective_permute"(%b) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8xf32>) -> tensor<8xf32>
  %2 = "stablehlo.collective_permute"(%c) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8xf32>) -> tensor<8xf32>
  %3 = "stablehlo.collective_permute"(%arg0) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8xf32>) -> tensor<8xf32>
  return %0, %1, %2, %3 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
