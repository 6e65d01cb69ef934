// RUN: sdy-opt %s | filecheck %s
// RUN: sdy-opt -mlir-print-op-generic %s | sdy-opt | filecheck %s

// CHECK-LABEL: func.func @starts_and_waits(
// CHECK-SAME: %arg0: tensor<4x2xf32>) -> tensor<4x8xf32> {
func.func @starts_and_waits(%arg0: tensor<4x2xf32>) -> tensor<4x8xf32> {
  // CHECK-NEXT: %0 = "stablehlo.async_start"(%arg0) ({
  // CHECK-NEXT: ^bb0(%arg1: tensor<4x2xf32>):
  // CHECK-NEXT:   %2 = "stablehlo.all_gather"(%arg1)
  // CHECK-NEXT:   stablehlo.return %2 : tensor<4x8xf32>
  // CHECK-NEXT: }) : (tensor<4x2xf32>) -> !stablehlo.future<tensor<4x8xf32>>
  %future = "stablehlo.async_start"(%arg0) ({
  ^bb0(%shard: tensor<4x2xf32>):
    %whole = "stablehlo.all_gather"(%shard) {all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>} : (tensor<4x2xf32>) -> tensor<4x8xf32>
    stablehlo.return %whole : tensor<4x8xf32>
  }) : (tensor<4x2xf32>) -> !stablehlo.future<tensor<4x8xf32>>
  // CHECK-NEXT: %1 = "stablehlo.async_done"(%0) : (!stablehlo.future<tensor<4x8xf32>>) -> tensor<4x8xf32>
  %done = "stablehlo.async_done"(%future) : (!stablehlo.future<tensor<4x8xf32>>) -> tensor<4x8xf32>
  return %done : tensor<4x8xf32>
}

// CHECK-LABEL: func.func private @two(!stablehlo.future<tensor<4xf32>, tensor<i32>>)
func.func private @two(!stablehlo.future<tensor<4xf32>, tensor<i32>>)
