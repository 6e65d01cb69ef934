// RUN: sdy-opt %s -sdy-combine-small-reductions | filecheck %s

// The sums of %arg0 and %arg1 are combined: another sum depends on one of them.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    "stablehlo.all_reduce"(%arg2)
// CHECK:         %[[FLAT:.*]] = stablehlo.reshape %arg0 : (tensor<4x2xf32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[BOTH:.*]] = stablehlo.concatenate %[[FLAT]], %arg1, dim = 0
// CHECK-NEXT:    %[[SUMS:.*]] = "stablehlo.all_reduce"(%[[BOTH]])
// CHECK:         %[[PART:.*]] = stablehlo.slice %[[SUMS]] [0:8]
// CHECK-NEXT:    %[[FIRST:.*]] = stablehlo.reshape %[[PART]] : (tensor<8xf32>) -> tensor<4x2xf32>
// CHECK:         %[[SECOND:.*]] = stablehlo.slice %[[SUMS]] [8:11]
// CHECK:         %[[NEXT:.*]] = stablehlo.negate %[[FIRST]]
// CHECK-NEXT:    "stablehlo.all_reduce"(%[[NEXT]])
func.func @main(%arg0: tensor<4x2xf32>, %arg1: tensor<3xf32>, %arg2: tensor<32x16xf32>) -> (tensor<4x2xf32>, tensor<3xf32>, tensor<32x16xf32>) {
  %0 = "stablehlo.all_reduce"(%arg0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %s = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x2xf32>) -> tensor<4x2xf32>
  %1 = stablehlo.negate %0 : tensor<4x2xf32>
  %2 = "stablehlo.all_reduce"(%arg2) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %s = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<32x16xf32>) -> tensor<32x16xf32>
  %3 = "stablehlo.all_reduce"(%1) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %s = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x2xf32>) -> tensor<4x2xf32>
  %4 = "stablehlo.all_reduce"(%arg1) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %s = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<3xf32>) -> tensor<3xf32>
  return %3, %4, %2 : tensor<4x2xf32>, tensor<3xf32>, tensor<32x16xf32>
}

// Unchanged: no other operation waits for one of the sums, so that XLA combines them.
// CHECK-LABEL: func.func @independent
// CHECK-NEXT:    "stablehlo.all_reduce"(%arg0)
// CHECK:         "stablehlo.all_reduce"(%arg1)
func.func @independent(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "stablehlo.all_reduce"(%arg0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %s = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "stablehlo.all_reduce"(%arg1) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %s = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
