// RUN: sdy-opt %s -split-input-file -verify-diagnostics

func.func @cholesky(%a: tensor<3x4xf32>) {
  // expected-error @+2 {{minor dimensions of 'a' must have equal size, got shape 3, 4.}}
  // expected-error @+1 {{'stablehlo.cholesky' op failed to infer returned types}}
  %0 = stablehlo.cholesky %a : tensor<3x4xf32>
  return
}

// -----

func.func @triangular_solve(%a: tensor<3x3xf32>, %b: tensor<4x3xf32>) {
  // expected-error @+2 {{shared dimension of operands 'a' and 'b' must be compatible, but got 'tensor<3x3xf32>' and 'tensor<4x3xf32>'}}
  // expected-error @+1 {{'stablehlo.triangular_solve' op failed to infer returned types}}
  %0 = "stablehlo.triangular_solve"(%a, %b) <{
    left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>
  }> : (tensor<3x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @fft(%a: tensor<2x9xf32>) {
  // expected-error @+2 {{RFFT requires innermost dimensions to be compatible with fft_length. Got: 2, 9 but wanted 8.}}
  // expected-error @+1 {{'stablehlo.fft' op failed to infer returned types}}
  %0 = stablehlo.fft %a, type = RFFT, length = [8] : (tensor<2x9xf32>) -> tensor<2x5xcomplex<f32>>
  return
}

// -----

func.func @batch_norm(%a: tensor<2x9xf32>, %scale: tensor<2xf32>) {
  // expected-error @+2 {{expects the size of single-dimensional operands to be compatible with feature count, but the size of single-dimensional operands is 2 and the feature count is 9.}}
  // expected-error @+1 {{'stablehlo.batch_norm_training' op failed to infer returned types}}
  %0:3 = "stablehlo.batch_norm_training"(%a, %scale, %scale) <{epsilon = 0.001 : f32, feature_index = 1 : i64}>
    : (tensor<2x9xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2x9xf32>, tensor<9xf32>, tensor<9xf32>)
  return
}
