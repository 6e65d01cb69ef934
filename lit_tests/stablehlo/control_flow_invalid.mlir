// RUN: sdy-opt %s -split-input-file -verify-diagnostics

func.func @body_returns_another_type(%arg0: tensor<i32>) {
  // expected-error @+1 {{expect operands to be compatible with body block return types but got 'tensor<i32>' vs 'tensor<i1>'}}
  %0 = stablehlo.while(%arg1 = %arg0) : tensor<i32>
    cond {
      %1 = stablehlo.compare LT, %arg1, %arg1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1 = stablehlo.compare LT, %arg1, %arg1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }
  return
}

// -----

func.func @condition_is_a_number(%arg0: tensor<i32>) {
  // expected-error @+1 {{expect condition block return a zero-ranked tensor of i1 but got 'tensor<i32>'}}
  %0 = stablehlo.while(%arg1 = %arg0) : tensor<i32>
    cond {
      stablehlo.return %arg1 : tensor<i32>
    } do {
      stablehlo.return %arg1 : tensor<i32>
    }
  return
}

// -----

func.func @branches_differ(%arg0: tensor<i32>, %arg1: tensor<4xf32>, %arg2: tensor<5xf32>) {
  // expected-error @+2 {{branch 0 and branch 1 have mismatched return types: 'tensor<4xf32>' vs 'tensor<5xf32>'}}
  // expected-error @+1 {{'stablehlo.case' op failed to infer returned types}}
  %0 = "stablehlo.case"(%arg0) ({
    stablehlo.return %arg1 : tensor<4xf32>
  }, {
    stablehlo.return %arg2 : tensor<5xf32>
  }) : (tensor<i32>) -> tensor<4xf32>
  return
}

// -----

func.func @no_branches(%arg0: tensor<i32>) {
  // expected-error @+2 {{expect at least one branch}}
  // expected-error @+1 {{'stablehlo.case' op failed to infer returned types}}
  "stablehlo.case"(%arg0) : (tensor<i32>) -> ()
  return
}

// -----

func.func @branches_give_another_type(%arg0: tensor<i1>, %arg1: tensor<4xf32>) {
  // expected-error @+2 {{'stablehlo.if' op inferred type(s) 'tensor<4xf32>' are incompatible with return type(s) of operation 'tensor<5xf32>'}}
  // expected-error @+1 {{'stablehlo.if' op failed to infer returned types}}
  %0 = "stablehlo.if"(%arg0) ({
    stablehlo.return %arg1 : tensor<4xf32>
  }, {
    stablehlo.return %arg1 : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<5xf32>
  return
}

// -----

func.func @many_predicates(%arg0: tensor<4xi1>, %arg1: tensor<4xf32>) {
  // expected-error @+2 {{operand should be rank 0 tensor but got rank 1}}
  // expected-error @+1 {{'stablehlo.if' op failed to infer returned types}}
  %0 = "stablehlo.if"(%arg0) ({
    stablehlo.return %arg1 : tensor<4xf32>
  }, {
    stablehlo.return %arg1 : tensor<4xf32>
  }) : (tensor<4xi1>) -> tensor<4xf32>
  return
}

// -----

func.func @barrier_to_another_type(%arg0: tensor<4xf32>) {
  // expected-error @+1 {{'stablehlo.optimization_barrier' op requires the same type for operand and result at index 0}}
  %0 = "stablehlo.optimization_barrier"(%arg0) : (tensor<4xf32>) -> tensor<?xf32>
  return
}
