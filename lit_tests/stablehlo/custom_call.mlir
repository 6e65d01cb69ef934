// RUN: sdy-opt %s | filecheck %s

// CHECK-LABEL: func.func @calls(%arg0: tensor<4xf32>) {
func.func @calls(%arg0: tensor<4xf32>) {
  // CHECK: stablehlo.composite "my.op" %arg0, %arg0 {composite_attributes = {n = 1 : i32}, decomposition = @impl, version = 3 : i32} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %0 = stablehlo.composite "my.op" %arg0, %arg0 {composite_attributes = {n = 1 : i32}, decomposition = @impl, version = 3 : i32} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: stablehlo.custom_call @"a b"(%arg0) {api_version = 4 : i32, backend_config = {x = 1 : i32}, output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>]} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = stablehlo.custom_call @"a b"(%arg0) {api_version = 4 : i32, backend_config = {x = 1 : i32}, output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>]} : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: stablehlo.custom_call @effect() {has_side_effect = true} : () -> ()
  stablehlo.custom_call @effect() {has_side_effect = true} : () -> ()
  // CHECK: stablehlo.custom_call @two(%arg0) {called_computations = [@impl]} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %2:2 = stablehlo.custom_call @two(%arg0) {called_computations = [@impl]} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// CHECK-LABEL: func.func @tuples(%arg0: tensor<4xf32>, %arg1: tensor<i32>) -> tensor<i32> {
func.func @tuples(%arg0: tensor<4xf32>, %arg1: tensor<i32>) -> tensor<i32> {
  // CHECK: stablehlo.tuple %arg0, %arg1 : tuple<tensor<4xf32>, tensor<i32>>
  %0 = stablehlo.tuple %arg0, %arg1 : tuple<tensor<4xf32>, tensor<i32>>
  // CHECK: stablehlo.get_tuple_element %0[1] : (tuple<tensor<4xf32>, tensor<i32>>) -> tensor<i32>
  %1 = stablehlo.get_tuple_element %0[1] : (tuple<tensor<4xf32>, tensor<i32>>) -> tensor<i32>
  // CHECK: stablehlo.tuple  : tuple<>
  %2 = stablehlo.tuple  : tuple<>
  return %1 : tensor<i32>
}

// CHECK-LABEL: func.func private @impl(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
func.func private @impl(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
  return %arg0 : tensor<4xf32>
}
