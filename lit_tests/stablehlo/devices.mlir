// RUN: sdy-opt %s | filecheck %s

// CHECK-LABEL: func.func @devices() -> (tensor<ui32>, tensor<ui32>) {
func.func @devices() -> (tensor<ui32>, tensor<ui32>) {
  // CHECK: stablehlo.replica_id : tensor<ui32>
  %0 = stablehlo.replica_id : tensor<ui32>
  // CHECK: stablehlo.partition_id : tensor<ui32>
  %1 = stablehlo.partition_id : tensor<ui32>
  return %0, %1 : tensor<ui32>, tensor<ui32>
}
