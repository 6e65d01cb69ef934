// RUN: sdy-opt %s | filecheck %s

// CHECK-LABEL: func.func @index(%arg0: tensor<4x8xf32>, %arg1: tensor<2xi32>, %arg2: tensor<2xi32>) {
func.func @index(%arg0: tensor<4x8xf32>, %arg1: tensor<2xi32>, %arg2: tensor<2xi32>) {
  // CHECK: "stablehlo.torch_index_select"(%arg0, %arg1) <{batch_dims = 0 : i64, dim = 0 : i64}> : (tensor<4x8xf32>, tensor<2xi32>) -> tensor<2x8xf32>
  %0 = "stablehlo.torch_index_select"(%arg0, %arg1) <{batch_dims = 0 : i64, dim = 0 : i64}> : (tensor<4x8xf32>, tensor<2xi32>) -> tensor<2x8xf32>
  // CHECK: "stablehlo.dynamic_gather"(%arg0, %arg1, %arg2) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 1], start_index_map = [0, 1]>, indices_are_sorted = true}> : (tensor<4x8xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>
  %1 = "stablehlo.dynamic_gather"(%arg0, %arg1, %arg2) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 1], start_index_map = [0, 1]>, indices_are_sorted = true}> : (tensor<4x8xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>
  return
}
