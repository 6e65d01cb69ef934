// RUN: sdy-opt %s | filecheck %s

// CHECK-LABEL: func.func @batch_norm(%arg0: tensor<2x4xf32>, %arg1: tensor<4xf32>) {
func.func @batch_norm(%arg0: tensor<2x4xf32>, %arg1: tensor<4xf32>) {
  %output, %batch_mean, %batch_var = "stablehlo.batch_norm_training"(%arg0, %arg1, %arg1) <{epsilon = 1.000000e-03 : f32, feature_index = 1 : i64}> : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>)
  // CHECK: "stablehlo.batch_norm_inference"(%arg0, %arg1, %arg1, %arg1, %arg1) <{epsilon = 1.000000e-03 : f32, feature_index = 1 : i64}> : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %0 = "stablehlo.batch_norm_inference"(%arg0, %arg1, %arg1, %arg1, %arg1) <{epsilon = 1.000000e-03 : f32, feature_index = 1 : i64}> : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %grad_operand, %grad_scale, %grad_offset = "stablehlo.batch_norm_grad"(%arg0, %arg1, %arg1, %arg1, %arg0) <{epsilon = 1.000000e-03 : f32, feature_index = 1 : i64}> : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// CHECK-LABEL: func.func @linear(%arg0: tensor<4x4xf32>, %arg1: tensor<4x2xf32>) {
func.func @linear(%arg0: tensor<4x4xf32>, %arg1: tensor<4x2xf32>) {
  // CHECK: stablehlo.cholesky %arg0, lower = true : tensor<4x4xf32>
  %0 = stablehlo.cholesky %arg0, lower = true : tensor<4x4xf32>
  // CHECK: stablehlo.cholesky %arg0 : tensor<4x4xf32>
  %1 = stablehlo.cholesky %arg0 : tensor<4x4xf32>
  // CHECK: "stablehlo.triangular_solve"(%arg0, %arg1) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<4x4xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  %2 = "stablehlo.triangular_solve"(%arg0, %arg1) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<4x4xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  // CHECK: stablehlo.logistic %arg0 : tensor<4x4xf32>
  %3 = stablehlo.logistic %arg0 : tensor<4x4xf32>
  return
}
