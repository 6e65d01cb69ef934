// RUN: sdy-opt %s -split-input-file -verify-diagnostics

!a = tensor<4x8x!quant.uniform<i8:f32, 5.000000e-01>>
!narrow = tensor<8x3x!quant.uniform<i4:f32, 5.000000e-01>>
!sum = tensor<4x3x!quant.uniform<i32:f32, 5.000000e-01>>
func.func @storage(%a: !a, %b: !narrow) {
  // expected-error @+1 {{mismatched lhs and rhs quantization storage types}}
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (!a, !narrow) -> !sum
  return
}

// -----

!b = tensor<8x3x!quant.uniform<i8:f32, 5.000000e-01:7>>
func.func @zero_point(%a: tensor<4x8xf32>, %b: !b) {
  // expected-error @+1 {{Zero point of rhs should be 0}}
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4x8xf32>, !b) -> tensor<4x3xf32>
  return
}

// -----

!b = tensor<2x3x!quant.uniform<i8:f32:0, {5.000000e-01, 2.000000e-01}>>
func.func @contracted(%a: tensor<4x2xf32>, %b: !b) {
  // expected-error @+1 {{Quantization dimension of rhs should not be in the contracting dimension of rhs}}
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4x2xf32>, !b) -> tensor<4x3xf32>
  return
}

// -----

!b = tensor<3x2x!quant.uniform<i8:f32:1, {5.000000e-01, 2.000000e-01}>>
func.func @kernel(%a: tensor<4x2xf32>, %b: !b) {
  // expected-error @+1 {{quantization dimension of rhs should be same with kernel_output_feature_dimension}}
  %0 = stablehlo.convolution(%a, %b) dim_numbers = [b, f]x[o, i]->[b, f], window = {}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x2xf32>, !b) -> tensor<4x3xf32>
  return
}

// -----

!b = tensor<2x3x!quant.uniform<i8:f32, 5.000000e-01>>
func.func @result(%a: tensor<4x2xf32>, %b: !b) {
  // expected-error @+1 {{mismatched rhs quantization expressed type and lhs and result element type}}
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4x2xf32>, !b) -> tensor<4x3xf16>
  return
}
