// RUN: sdy-opt %s -sdy-merge-overlapping-permutes | filecheck %s

// Shifts by one, three and two rows: one permute of three rows.
// CHECK-LABEL: func.func @shifts
func.func @shifts(%arg0: tensor<4x8xf32>) -> (tensor<1x8xf32>, tensor<3x8xf32>, tensor<2x8xf32>) {
  // CHECK-NEXT: %[[ROWS:.*]] = stablehlo.slice %arg0 [1:4, 0:8]
  // CHECK-NEXT: %[[RECEIVED:.*]] = "stablehlo.collective_permute"(%[[ROWS]])
  // CHECK-NEXT: %[[LAST:.*]] = stablehlo.slice %[[RECEIVED]] [2:3, 0:8]
  // CHECK-NEXT: %[[ALL:.*]] = stablehlo.slice %[[RECEIVED]] [0:3, 0:8]
  // CHECK-NEXT: %[[TWO:.*]] = stablehlo.slice %[[RECEIVED]] [1:3, 0:8]
  // CHECK-NEXT: return %[[LAST]], %[[ALL]], %[[TWO]]
  %0 = stablehlo.slice %arg0 [3:4, 0:8] : (tensor<4x8xf32>) -> tensor<1x8xf32>
  %1 = "stablehlo.collective_permute"(%0) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<1x8xf32>) -> tensor<1x8xf32>
  %2 = stablehlo.slice %arg0 [1:4, 0:8] : (tensor<4x8xf32>) -> tensor<3x8xf32>
  %3 = "stablehlo.collective_permute"(%2) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<3x8xf32>) -> tensor<3x8xf32>
  %4 = stablehlo.slice %arg0 [2:4, 0:8] : (tensor<4x8xf32>) -> tensor<2x8xf32>
  %5 = "stablehlo.collective_permute"(%4) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<2x8xf32>) -> tensor<2x8xf32>
  return %1, %3, %5 : tensor<1x8xf32>, tensor<3x8xf32>, tensor<2x8xf32>
}

// Unchanged: disjoint rows, rows for another device, every second row, and rows of another tensor.
// CHECK-LABEL: func.func @others
func.func @others(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<2xf32>, tensor<1xf32>) {
  // CHECK-COUNT-5: collective_permute
  %0 = stablehlo.slice %arg0 [3:4] : (tensor<4xf32>) -> tensor<1xf32>
  %1 = "stablehlo.collective_permute"(%0) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<1xf32>) -> tensor<1xf32>
  %2 = stablehlo.slice %arg0 [2:3] : (tensor<4xf32>) -> tensor<1xf32>
  %3 = "stablehlo.collective_permute"(%2) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<1xf32>) -> tensor<1xf32>
  %4 = "stablehlo.collective_permute"(%0) <{source_target_pairs = dense<[[1, 0]]> : tensor<1x2xi64>}> : (tensor<1xf32>) -> tensor<1xf32>
  %5 = stablehlo.slice %arg0 [1:4:2] : (tensor<4xf32>) -> tensor<2xf32>
  %6 = "stablehlo.collective_permute"(%5) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<2xf32>) -> tensor<2xf32>
  %7 = stablehlo.slice %arg1 [3:4] : (tensor<4xf32>) -> tensor<1xf32>
  %8 = "stablehlo.collective_permute"(%7) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<1xf32>) -> tensor<1xf32>
  return %1, %3, %4, %6, %8 : tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<2xf32>, tensor<1xf32>
}
