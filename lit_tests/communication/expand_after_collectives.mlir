// RUN: sdy-opt %s -sdy-expand-after-collectives | filecheck %s

// CHECK-LABEL: func.func @repeated_heads
// CHECK-SAME:      (%[[ARG:.*]]: tensor<4x2x8xf32>)
func.func @repeated_heads(%arg0: tensor<4x2x8xf32>) -> tensor<8x6x16xf32> {
  // CHECK-NEXT: %[[WHOLE:.*]] = "stablehlo.all_gather"(%[[ARG]]) <{all_gather_dim = 0 : i64, {{.*}} : (tensor<4x2x8xf32>) -> tensor<16x2x8xf32>
  // CHECK-NEXT: %[[EACH:.*]] = stablehlo.broadcast_in_dim %[[WHOLE]], dims = [0, 1, 3] : (tensor<16x2x8xf32>) -> tensor<16x2x3x8xf32>
  // CHECK-NEXT: %[[HEADS:.*]] = stablehlo.reshape %[[EACH]] : (tensor<16x2x3x8xf32>) -> tensor<16x6x8xf32>
  // CHECK-NEXT: %[[LAST:.*]] = stablehlo.transpose %[[HEADS]], dims = [2, 1, 0]
  // CHECK-NEXT: return %[[LAST]]
  %0 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1, 3] : (tensor<4x2x8xf32>) -> tensor<4x2x3x8xf32>
  %1 = stablehlo.reshape %0 : (tensor<4x2x3x8xf32>) -> tensor<4x6x8xf32>
  %2 = stablehlo.transpose %1, dims = [2, 1, 0] : (tensor<4x6x8xf32>) -> tensor<8x6x4xf32>
  %3 = "stablehlo.all_gather"(%2) <{all_gather_dim = 2 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> : (tensor<8x6x4xf32>) -> tensor<8x6x16xf32>
  return %3 : tensor<8x6x16xf32>
}

// The movement before the broadcast remains.
// CHECK-LABEL: func.func @all_to_all
func.func @all_to_all(%arg0: tensor<8x4xf32>) -> tensor<16x3x2xf32> {
  // CHECK-NEXT: %[[T:.*]] = stablehlo.transpose
  // CHECK-NEXT: %[[X:.*]] = "stablehlo.all_to_all"(%[[T]]) <{concat_dimension = 1 : i64, {{.*}} split_dimension = 0 : i64}> : (tensor<4x8xf32>) -> tensor<2x16xf32>
  // CHECK-NEXT: stablehlo.broadcast_in_dim %[[X]], dims = [2, 0] : (tensor<2x16xf32>) -> tensor<16x3x2xf32>
  %0 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [2, 0] : (tensor<4x8xf32>) -> tensor<8x3x4xf32>
  %2 = "stablehlo.all_to_all"(%1) <{concat_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, split_count = 2 : i64, split_dimension = 2 : i64}> : (tensor<8x3x4xf32>) -> tensor<16x3x2xf32>
  return %2 : tensor<16x3x2xf32>
}

// Sums and permutes, of a scalar too.
// CHECK-LABEL: func.func @scalar
func.func @scalar(%arg0: tensor<f32>) -> tensor<8x8xf32> {
  // CHECK-NEXT: %[[SENT:.*]] = "stablehlo.collective_permute"(%arg0) {{.*}} : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: %[[SUM:.*]] = "stablehlo.all_reduce"(%[[SENT]])
  // CHECK:      stablehlo.broadcast_in_dim %[[SUM]], dims = [] : (tensor<f32>) -> tensor<8x8xf32>
  %0 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> tensor<8x8xf32>
  %1 = "stablehlo.collective_permute"(%0) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = "stablehlo.all_reduce"(%1) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %sum = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %sum : tensor<f32>
  }) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// Unchanged: a gathered dimension that is repeated, one that a reshape merges, an operand with another use, and movements that repeat nothing.
// CHECK-LABEL: func.func @unchanged
func.func @unchanged(%arg0: tensor<4x2xf32>) -> (tensor<32x2xf32>, tensor<24x4xf32>, tensor<16x2x3xf32>, tensor<4x2x3xf32>, tensor<2x16xf32>) {
  // CHECK-NEXT: stablehlo.reshape
  // CHECK-NEXT: stablehlo.broadcast_in_dim
  // CHECK-NEXT: stablehlo.reshape
  // CHECK-NEXT: stablehlo.all_gather
  // CHECK-NEXT: stablehlo.broadcast_in_dim
  // CHECK-NEXT: stablehlo.reshape
  // CHECK-NEXT: stablehlo.all_gather
  // CHECK-NEXT: stablehlo.broadcast_in_dim
  // CHECK-NEXT: stablehlo.all_gather
  // CHECK-NEXT: stablehlo.transpose
  // CHECK-NEXT: stablehlo.all_gather
  %0 = stablehlo.reshape %arg0 : (tensor<4x2xf32>) -> tensor<4x1x2xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [0, 1, 2] : (tensor<4x1x2xf32>) -> tensor<4x2x2xf32>
  %2 = stablehlo.reshape %1 : (tensor<4x2x2xf32>) -> tensor<8x2xf32>
  %3 = "stablehlo.all_gather"(%2) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> : (tensor<8x2xf32>) -> tensor<32x2xf32>
  %4 = stablehlo.broadcast_in_dim %arg0, dims = [1, 2] : (tensor<4x2xf32>) -> tensor<3x4x2xf32>
  %5 = stablehlo.reshape %4 : (tensor<3x4x2xf32>) -> tensor<6x4xf32>
  %6 = "stablehlo.all_gather"(%5) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> : (tensor<6x4xf32>) -> tensor<24x4xf32>
  %7 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1] : (tensor<4x2xf32>) -> tensor<4x2x3xf32>
  %8 = "stablehlo.all_gather"(%7) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> : (tensor<4x2x3xf32>) -> tensor<16x2x3xf32>
  %9 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<4x2xf32>) -> tensor<2x4xf32>
  %10 = "stablehlo.all_gather"(%9) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> : (tensor<2x4xf32>) -> tensor<2x16xf32>
  return %3, %6, %8, %7, %10 : tensor<32x2xf32>, tensor<24x4xf32>, tensor<16x2x3xf32>, tensor<4x2x3xf32>, tensor<2x16xf32>
}
