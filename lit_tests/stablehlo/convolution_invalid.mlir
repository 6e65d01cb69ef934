// RUN: sdy-opt %s -split-input-file -verify-diagnostics

func.func @spatial_dimensions(%input: tensor<2x8x8x3xf32>, %kernel: tensor<3x3x3x5xf32>) {
  // expected-error @+1 {{expects the same size for input, kernel and output spatial-dimensions, but got 2, 2, and 1 resp.}}
  %0 = stablehlo.convolution(%input, %kernel) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, f], window = {}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<2x8x8x3xf32>, tensor<3x3x3x5xf32>) -> tensor<2x6x6x5xf32>
  return
}

// -----

func.func @features(%input: tensor<2x8x8x4xf32>, %kernel: tensor<3x3x3x5xf32>) {
  // expected-error @+1 {{expects input feature dimension (4) / feature_group_count = kernel input feature dimension (3). Got feature_group_count = 1.}}
  %0 = stablehlo.convolution(%input, %kernel) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<2x8x8x4xf32>, tensor<3x3x3x5xf32>) -> tensor<2x6x6x5xf32>
  return
}

// -----

func.func @shape(%input: tensor<2x?x8x3xf32>, %kernel: tensor<3x3x3x5xf32>) {
  // expected-error @+1 {{inferred shape '[2, ?, 3, 5]' is incompatible with return type of operation 'tensor<2x6x6x5xf32>'}}
  %0 = stablehlo.convolution(%input, %kernel) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 2]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<2x?x8x3xf32>, tensor<3x3x3x5xf32>) -> tensor<2x6x6x5xf32>
  return
}

// -----

func.func @padding(%input: tensor<2x8x3xf32>, %kernel: tensor<3x3x5xf32>) {
  %pads = stablehlo.constant dense<1> : tensor<2x2xi64>
  // expected-error @+1 {{expects padding to be of shape [1, 2], but got [2, 2]}}
  %0 = "stablehlo.dynamic_conv"(%input, %kernel, %pads) <{
    dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>,
    batch_group_count = 1 : i64, feature_group_count = 1 : i64
  }> : (tensor<2x8x3xf32>, tensor<3x3x5xf32>, tensor<2x2xi64>) -> tensor<2x8x5xf32>
  return
}

// -----

func.func @letters(%input: tensor<2x8x3xf32>, %kernel: tensor<3x3x5xf32>) {
  // expected-error @+1 {{custom op 'stablehlo.convolution' Unexpected dimension o, expecting b, f}}
  %0 = stablehlo.convolution(%input, %kernel) dim_numbers = [o, 0, f]x[0, i, o]->[b, 0, f], window = {}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<2x8x3xf32>, tensor<3x3x5xf32>) -> tensor<2x8x5xf32>
  return
}

// -----

func.func @window(%input: tensor<2x8x3xf32>, %kernel: tensor<3x3x5xf32>) {
  // expected-error @+1 {{custom op 'stablehlo.convolution' Expected array with 2 elements, got 1 elements instead}}
  %0 = stablehlo.convolution(%input, %kernel) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1]]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<2x8x3xf32>, tensor<3x3x5xf32>) -> tensor<2x8x5xf32>
  return
}

// -----

func.func @groups(%input: tensor<2x3xf32>, %kernel: tensor<3x5xf32>) {
  %0 = stablehlo.convolution(%input, %kernel) dim_numbers = [b, f]x[i, o]->[b, f], window = {}
    // expected-error @+1 {{custom op 'stablehlo.convolution' 'stablehlo.convolution' op attribute 'batch_group_count' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
    {batch_group_count = 0 : i64, feature_group_count = 1 : i64} : (tensor<2x3xf32>, tensor<3x5xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @operand(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{custom op 'stablehlo.convolution' number of operands and types do not match: got 1 operands and 2 types}}
  %0 = stablehlo.convolution(%input) dim_numbers = [b, f]x[i, o]->[b, f], window = {}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x3xf32>, tensor<3x5xf32>) -> tensor<2x5xf32>
  return
}
