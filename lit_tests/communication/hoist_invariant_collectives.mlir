// RUN: sdy-opt %s -sdy-hoist-invariant-collectives | filecheck %s

// The operand's producers are hoisted as well, and a loop-carried value that never changes is its initial value.
// CHECK-LABEL: func.func @unchanged
func.func @unchanged(%arg0: tensor<2xf32>, %arg1: tensor<8xf32>, %arg2: tensor<i1>) -> tensor<8xf32> {
  // CHECK-NEXT: %[[PART:.*]] = stablehlo.tanh %arg0
  // CHECK-NEXT: %[[WHOLE:.*]] = "stablehlo.all_gather"(%[[PART]])
  // CHECK-NEXT: stablehlo.while(%{{.*}} = %arg0, %[[SUM:.*]] = %arg1)
  // CHECK: stablehlo.add %[[SUM]], %[[WHOLE]]
  %0:2 = stablehlo.while(%part = %arg0, %sum = %arg1) : tensor<2xf32>, tensor<8xf32>
  cond {
    stablehlo.return %arg2 : tensor<i1>
  } do {
    %1 = stablehlo.tanh %part : tensor<2xf32>
    %2 = "stablehlo.all_gather"(%1) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> : (tensor<2xf32>) -> tensor<8xf32>
    %3 = stablehlo.add %sum, %2 : tensor<8xf32>
    stablehlo.return %part, %3 : tensor<2xf32>, tensor<8xf32>
  }
  return %0#1 : tensor<8xf32>
}

// Hoisted out of two nested loops, and from the condition of a loop.
// CHECK-LABEL: func.func @loop_in_a_loop
func.func @loop_in_a_loop(%arg0: tensor<i1>, %arg1: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: %[[GO:.*]] = "stablehlo.all_reduce"(%arg0)
  // CHECK: %[[MOVED:.*]] = "stablehlo.collective_permute"(%arg1)
  // CHECK: stablehlo.while
  // CHECK: stablehlo.return %[[GO]]
  // CHECK: stablehlo.while
  // CHECK: stablehlo.add %{{.*}}, %[[MOVED]]
  %0 = stablehlo.while(%outer = %arg1) : tensor<8xf32>
  cond {
    %1 = "stablehlo.all_reduce"(%arg0) <{replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> ({
    ^bb0(%x: tensor<i1>, %y: tensor<i1>):
      %3 = stablehlo.or %x, %y : tensor<i1>
      stablehlo.return %3 : tensor<i1>
    }) : (tensor<i1>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.while(%inner = %outer) : tensor<8xf32>
    cond {
      stablehlo.return %arg0 : tensor<i1>
    } do {
      %2 = "stablehlo.collective_permute"(%arg1) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8xf32>) -> tensor<8xf32>
      %3 = stablehlo.add %inner, %2 : tensor<8xf32>
      stablehlo.return %3 : tensor<8xf32>
    }
    stablehlo.return %1 : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}

// Not hoisted: a collective of a value that changes, of an optimization barrier, and in a branch that may never run.
// CHECK-LABEL: func.func @stays
func.func @stays(%arg0: tensor<8xf32>, %arg1: tensor<i1>) -> tensor<8xf32> {
  // CHECK-NEXT: stablehlo.while
  // CHECK-COUNT-3: "stablehlo.collective_permute"
  // CHECK-NOT: "stablehlo.collective_permute"
  %0 = stablehlo.while(%sum = %arg0) : tensor<8xf32>
  cond {
    stablehlo.return %arg1 : tensor<i1>
  } do {
    %1 = "stablehlo.collective_permute"(%sum) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8xf32>) -> tensor<8xf32>
    %2 = stablehlo.optimization_barrier %arg0 : tensor<8xf32>
    %3 = "stablehlo.collective_permute"(%2) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8xf32>) -> tensor<8xf32>
    %4 = "stablehlo.if"(%arg1) ({
      %5 = "stablehlo.collective_permute"(%arg0) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8xf32>) -> tensor<8xf32>
      stablehlo.return %5 : tensor<8xf32>
    }, {
      stablehlo.return %arg0 : tensor<8xf32>
    }) : (tensor<i1>) -> tensor<8xf32>
    %6 = stablehlo.add %1, %3 : tensor<8xf32>
    %7 = stablehlo.add %6, %4 : tensor<8xf32>
    stablehlo.return %7 : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}
