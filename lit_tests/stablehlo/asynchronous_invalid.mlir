// RUN: sdy-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{future element type must be a ranked tensor, but got 'f32'}}
func.func private @future_of_a_number(!stablehlo.future<f32>)

// -----

func.func @starts_an_addition(%arg0: tensor<4xf32>) {
  // expected-error @+2 {{'stablehlo.async_start' op region must contain a collective or slice operation}}
  // expected-error @+1 {{'stablehlo.async_start' op failed to infer returned types}}
  %0 = "stablehlo.async_start"(%arg0) ({
  ^bb0(%arg1: tensor<4xf32>):
    %1 = stablehlo.add %arg1, %arg1 : tensor<4xf32>
    stablehlo.return %1 : tensor<4xf32>
  }) : (tensor<4xf32>) -> !stablehlo.future<tensor<4xf32>>
  return
}

// -----

func.func @waits_for_another_type(%arg0: !stablehlo.future<tensor<4xf32>>) {
  // expected-error @+2 {{'stablehlo.async_done' op inferred type(s) 'tensor<4xf32>' are incompatible with return type(s) of operation 'tensor<4xi32>'}}
  // expected-error @+1 {{'stablehlo.async_done' op failed to infer returned types}}
  %0 = "stablehlo.async_done"(%arg0) : (!stablehlo.future<tensor<4xf32>>) -> tensor<4xi32>
  return
}

// -----

func.func @waits_for_two(%arg0: !stablehlo.future<tensor<4xf32>, tensor<4xf32>>) {
  // expected-error @+2 {{'stablehlo.async_done' op future must have exactly one type parameter, but got 2}}
  // expected-error @+1 {{'stablehlo.async_done' op failed to infer returned types}}
  %0 = "stablehlo.async_done"(%arg0) : (!stablehlo.future<tensor<4xf32>, tensor<4xf32>>) -> tensor<4xf32>
  return
}
