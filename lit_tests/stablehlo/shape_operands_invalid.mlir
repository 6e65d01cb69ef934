// RUN: sdy-opt %s -split-input-file -verify-diagnostics

// A constant operand is checked for each operation, even if an equal operation precedes it.
func.func @two_constants(%arg0: tensor<12xf32>) {
  %0 = stablehlo.constant dense<[3, 4]> : tensor<2xi64>
  %1 = stablehlo.constant dense<[2, 6]> : tensor<2xi64>
  %2 = stablehlo.dynamic_reshape %arg0, %0 : (tensor<12xf32>, tensor<2xi64>) -> tensor<3x4xf32>
  // expected-error @+1 {{output shape [2, 6] is incompatible with return type of operation 'tensor<3x4xf32>'}}
  %3 = stablehlo.dynamic_reshape %arg0, %1 : (tensor<12xf32>, tensor<2xi64>) -> tensor<3x4xf32>
  return
}

// -----

func.func @random_numbers(%arg0: tensor<f32>) {
  %0 = stablehlo.constant dense<[3, 4]> : tensor<2xi64>
  %1 = stablehlo.constant dense<[2, 6]> : tensor<2xi64>
  %2 = stablehlo.rng %arg0, %arg0, %0, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<3x4xf32>
  // expected-error @+2 {{'stablehlo.rng' op inferred type(s) 'tensor<2x6xf32>' are incompatible with return type(s) of operation 'tensor<3x4xf32>'}}
  // expected-error @+1 {{'stablehlo.rng' op failed to infer returned types}}
  %3 = stablehlo.rng %arg0, %arg0, %1, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<3x4xf32>
  return
}
