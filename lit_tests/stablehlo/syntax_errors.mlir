// RUN: sdy-opt %s -split-input-file -verify-diagnostics

func.func @fewer_operands(%arg0: tensor<2xf32>) {
  // expected-error@+1 {{custom op 'stablehlo.negate' 1 operands present, but expected 2}}
  %0 = stablehlo.negate %arg0 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @two_results(%arg0: tensor<2xf32>) {
  // expected-error@+1 {{custom op 'stablehlo.multiply' expected single output}}
  %0 = stablehlo.multiply %arg0, %arg0 : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  return
}

// -----

func.func @no_complex_type(%arg0: tensor<2xf32>) {
  // expected-error@+1 {{custom op 'stablehlo.complex' expected tensor with complex element type}}
  %0 = stablehlo.complex %arg0, %arg0 : tensor<2xf32>
  return
}

// -----

func.func @three_types(%arg0: tensor<i1>, %arg1: tensor<f32>) {
  // expected-error@+1 {{custom op 'stablehlo.select' expected functional type or list of two types}}
  %0 = stablehlo.select %arg0, %arg1, %arg1 : tensor<i1>, tensor<f32>, tensor<f32>
  return
}

// -----

func.func @no_tuple_type(%arg0: tensor<f32>) {
  // expected-error@+1 {{custom op 'stablehlo.tuple' expected tuple type}}
  %0 = stablehlo.tuple %arg0 : tensor<f32>
  return
}

// -----

func.func @fewer_types(%arg0: tensor<f32>) {
  // expected-error@+1 {{custom op 'stablehlo.optimization_barrier' number of operands and types do not match: got 2 operands and 1 types}}
  %0:2 = stablehlo.optimization_barrier %arg0, %arg0 : tensor<f32>
  return
}

// -----

func.func @no_type(%arg0: tensor<f32>) {
  // expected-error@+2 {{expected non-function type}}
  // expected-error@+1 {{custom op 'stablehlo.optimization_barrier' expected type list}}
  %0 = stablehlo.optimization_barrier %arg0 : 2
  return
}

// -----

func.func @half_a_function_type(%arg0: tensor<f32>) {
  // expected-error@+1 {{expected '->' in function type}}
  %0 = stablehlo.tuple %arg0 : (tensor<f32>)
  return
}

// -----

func.func @no_number(%arg0: tensor<2x2xf32>) {
  // expected-error@+2 {{custom op 'stablehlo.transpose' expected integer value}}
  // expected-error@+1 {{expected ']'}}
  %0 = stablehlo.transpose %arg0, dims = [1, x] : (tensor<2x2xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @no_format(%arg0: tensor<f32>) {
  // expected-error@+1 {{custom op 'stablehlo.reduce_precision' expected exponent mantissa in format e#m#, saw m10e5}}
  %0 = stablehlo.reduce_precision %arg0, format = m10e5 : tensor<f32>
  return
}

// -----

func.func @too_many_bits(%arg0: tensor<f32>) {
  // expected-error@+1 {{custom op 'stablehlo.reduce_precision' unable to parse mantissa '99999999999'}}
  %0 = stablehlo.reduce_precision %arg0, format = e5m99999999999 : tensor<f32>
  return
}

// -----

func.func @no_symbol() {
  // expected-error@+1 {{custom op 'stablehlo.custom_call' expected valid '@'-identifier for symbol name}}
  stablehlo.custom_call "target"() : () -> ()
  return
}
