// RUN: sdy-opt %s -split-input-file -verify-diagnostics

func.func @ranks(%a: tensor<2x4x8xf32>, %b: tensor<8xf32>) {
  // expected-error @+1 {{expected both lhs/rhs ranks to be either 1 or 2}}
  %0 = stablehlo.dot %a, %b : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @bounds(%a: tensor<?x4xf32, #stablehlo.bounds<2, ?>>, %b: tensor<3x4xf32>) {
  // expected-error @+1 {{Mismatched dimension size 3 and bound 2 in dimension 0}}
  %0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [1] x [1]
    : (tensor<?x4xf32, #stablehlo.bounds<2, ?>>, tensor<3x4xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @precision(%a: tensor<4x8xf32>, %b: tensor<8x3xf32>) {
  // expected-error @+1 {{expects precision config to be empty or have <= 2 elements, got 3}}
  %0 = stablehlo.dot %a, %b, precision = [HIGH, HIGH, HIGH] : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @word(%a: tensor<4x8xf32>, %b: tensor<8x3xf32>) {
  // expected-error @+2 {{custom op 'stablehlo.dot' expected ::mlir::stablehlo::Precision to be one of: DEFAULT, HIGH, HIGHEST}}
  // expected-error @+1 {{custom op 'stablehlo.dot' failed to parse StableHLO_PrecisionAttr parameter 'value' which is to be a `::mlir::stablehlo::Precision`}}
  %0 = stablehlo.dot %a, %b, precision = [LOW] : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @algorithm(%a: tensor<4x8xf32>, %b: tensor<8x3xf32>) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0],
    // expected-error @+1 {{dot algorithm not known to be supported on any hardware: {lhs:'f32', rhs:'f32', accum:'f64', lhs_components:1, rhs_components:1, primitive_ops:1, imprecise:0}}}
    algorithm = <lhs_precision_type = f32, rhs_precision_type = f32, accumulation_type = f64, lhs_component_count = 1,
      rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false>
    : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

// expected-error @+2 {{duplicated `lhs_contracting_dimensions` entry}}
// expected-error @+1 {{failed parsing dot dimension numbers attribute}}
module attributes {stablehlo.dot = #stablehlo.dot<lhs_contracting_dimensions = [1], lhs_contracting_dimensions = [0]>} {}
