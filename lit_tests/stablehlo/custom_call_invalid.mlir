// RUN: sdy-opt %s -split-input-file -verify-diagnostics

func.func @one_sided_layouts(%arg0: tensor<4x8xf32>) {
  // expected-error @+1 {{Layout attributes should be specified for either both operands and results or none.}}
  %0 = stablehlo.custom_call @f(%arg0) {operand_layouts = [dense<[1, 0]> : tensor<2xindex>]} : (tensor<4x8xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @layout_of_another_rank(%arg0: tensor<4x8xf32>) {
  // expected-error @+1 {{incorrect layout dense<0> : tensor<1xindex> for type 'tensor<4x8xf32>', layout must be a permutation of [0, 2)}}
  %0 = stablehlo.custom_call @f(%arg0) {operand_layouts = [dense<0> : tensor<1xindex>], result_layouts = [dense<0> : tensor<1xindex>]} : (tensor<4x8xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @alias_of_no_operand(%arg0: tensor<4xf32>) {
  // expected-error @+1 {{expects operandIndex in the output_operand_alias attribute to be in range [0, 1); got: 1.}}
  %0 = stablehlo.custom_call @f(%arg0) {output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 1, operand_tuple_indices = []>]} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @alias_of_another_type(%arg0: tensor<4xf32>) {
  // expected-error @+1 {{shapes mismatch in the output_operand_alias attribute: operand part has type 'tensor<4xf32>' and output part has type 'tensor<5xf32>'}}
  %0 = stablehlo.custom_call @f(%arg0) {output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>]} : (tensor<4xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @configuration_of_another_kind(%arg0: tensor<4xf32>) {
  // expected-error @+1 {{backend_config for api_version API_VERSION_TYPED_FFI must be a dictionary attribute.}}
  %0 = stablehlo.custom_call @f(%arg0) {api_version = 4 : i32, backend_config = "x"} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @version_of_the_future(%arg0: tensor<4xf32>) {
  // expected-error @+1 {{'stablehlo.custom_call' op attribute 'api_version' failed to satisfy constraint: Custom call API version}}
  %0 = stablehlo.custom_call @f(%arg0) {api_version = 9 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @pinned_tensor(%arg0: tensor<4xf32>) {
  // expected-error @+1 {{Pin custom_call should have a memref output}}
  %0 = stablehlo.custom_call @Pin(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @lost_buffer(%arg0: memref<4xf32>) {
  // expected-error @+1 {{buffer output [] is not used in output_operand_alias}}
  %0 = stablehlo.custom_call @f(%arg0) : (memref<4xf32>) -> memref<4xf32>
  return
}

// -----

func.func @name_without_namespace(%arg0: tensor<4xf32>) {
  // expected-error @+1 {{name must be a valid namespaced op name}}
  %0 = stablehlo.composite "f" %arg0 {decomposition = @name_without_namespace} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @missing_decomposition(%arg0: tensor<4xf32>) {
  // expected-error @+1 {{'g' does not reference a valid function}}
  %0 = stablehlo.composite "my.f" %arg0 {decomposition = @g} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func private @g(tensor<4xf32>) -> tensor<5xf32>
func.func @other_decomposition(%arg0: tensor<4xf32>) {
  // expected-error @+1 {{result at index 0 has type 'tensor<4xf32>', but decomposition has type 'tensor<5xf32>'}}
  %0 = stablehlo.composite "my.f" %arg0 {decomposition = @g} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @element_that_is_not_there(%arg0: tuple<tensor<4xf32>>) {
  // expected-error @+2 {{index 1 is out of bounds of operand with size 1}}
  // expected-error @+1 {{'stablehlo.get_tuple_element' op failed to infer returned types}}
  %0 = stablehlo.get_tuple_element %arg0[1] : (tuple<tensor<4xf32>>) -> tensor<4xf32>
  return
}

// -----

func.func @tuple_of_another_type(%arg0: tensor<4xf32>) {
  // expected-error @+2 {{'stablehlo.tuple' op inferred type(s) 'tuple<tensor<4xf32>>' are incompatible with return type(s) of operation 'tuple<tensor<5xf32>>'}}
  // expected-error @+1 {{'stablehlo.tuple' op failed to infer returned types}}
  %0 = "stablehlo.tuple"(%arg0) : (tensor<4xf32>) -> tuple<tensor<5xf32>>
  return
}
