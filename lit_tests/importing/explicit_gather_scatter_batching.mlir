// RUN: sdy-opt %s -sdy-explicit-gather-scatter-batching -symbol-dce | filecheck %s

// CHECK-LABEL: func.func @rows_first
func.func @rows_first(%arg0: tensor<4x8xf32>, %arg1: tensor<4x1xi32>) -> tensor<4xf32> {
  // CHECK: "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1],
  // CHECK-SAME: operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1],
  // CHECK-SAME: index_vector_dim = 1>,
  // CHECK-SAME: (tensor<4x8xf32>, tensor<4x1xi32>) -> tensor<4xf32>
  %0 = stablehlo.iota dim = 0 : tensor<4x1xi32>
  %1 = stablehlo.concatenate %0, %arg1, dim = 1 : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x2xi32>
  %2 = "stablehlo.gather"(%arg0, %1) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<4x8xf32>, tensor<4x2xi32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// CHECK-LABEL: func.func @rows_in_the_middle
func.func @rows_in_the_middle(%arg0: tensor<4x8x2xf32>, %arg1: tensor<4x1xi32>, %arg2: tensor<4x1xi32>) -> tensor<4xf32> {
  // CHECK: %[[INDICES:.*]] = stablehlo.concatenate %arg1, %arg2, dim = 1
  // CHECK-NEXT: "stablehlo.gather"(%arg0, %[[INDICES]])
  // CHECK-SAME: start_index_map = [2, 1]
  %0 = stablehlo.iota dim = 0 : tensor<4xi32>
  %1 = stablehlo.reshape %0 : (tensor<4xi32>) -> tensor<4x1xi32>
  %2 = stablehlo.concatenate %arg1, %1, %arg2, dim = 1 : (tensor<4x1xi32>, tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x3xi32>
  %3 = "stablehlo.gather"(%arg0, %2) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1, 2], start_index_map = [2, 0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1, 1>}> : (tensor<4x8x2xf32>, tensor<4x3xi32>) -> tensor<4xf32>
  return %3 : tensor<4xf32>
}

// Row i of the indices is (i, i): only the first component can become a batching dimension.
// CHECK-LABEL: func.func @not_concatenated
func.func @not_concatenated(%arg0: tensor<4x8xf32>) -> tensor<4xf32> {
  // CHECK: %[[ROWS:.*]] = stablehlo.iota dim = 0 : tensor<4x2xi32>
  // CHECK-NEXT: %[[COLUMNS:.*]] = stablehlo.slice %[[ROWS]] [0:4, 1:2]
  // CHECK-NEXT: "stablehlo.gather"(%arg0, %[[COLUMNS]])
  %0 = stablehlo.iota dim = 0 : tensor<4x2xi32>
  %1 = "stablehlo.gather"(%arg0, %0) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<4x8xf32>, tensor<4x2xi32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// JAX's select for negative indices has no effect on an iota.
// CHECK-LABEL: func.func @scatter_as_jax_lowers_it
func.func @scatter_as_jax_lowers_it(%arg0: tensor<4x8xf32>, %arg1: tensor<4x1xi32>, %arg2: tensor<4xf32>) -> tensor<4x8xf32> {
  // CHECK: "stablehlo.scatter"(%arg0, %arg1, %arg2)
  // CHECK-SAME: #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0],
  // CHECK-SAME: scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>
  %c = stablehlo.constant dense<0> : tensor<i32>
  %c_0 = stablehlo.constant dense<4> : tensor<4xi32>
  %0 = stablehlo.iota dim = 0 : tensor<4xi32>
  %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<4xi32>
  %2 = stablehlo.compare LT, %0, %1, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
  %3 = stablehlo.add %0, %c_0 : tensor<4xi32>
  %4 = stablehlo.select %2, %3, %0 : tensor<4xi1>, tensor<4xi32>
  %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<4xi32>) -> tensor<4x1xi32>
  %6 = stablehlo.concatenate %5, %arg1, dim = 1 : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x2xi32>
  %7 = "stablehlo.scatter"(%arg0, %6, %arg2) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>, unique_indices = false}> ({
  ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
    stablehlo.return %arg4 : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<4x2xi32>, tensor<4xf32>) -> tensor<4x8xf32>
  return %7 : tensor<4x8xf32>
}

// A clamp to 0 .. 2 changes the last row number.
// CHECK-LABEL: func.func @limits
func.func @limits(%arg0: tensor<4x8xf32>, %arg1: tensor<4x1xi32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK: "stablehlo.gather"(%arg0, %arg1)
  // CHECK-NEXT: "stablehlo.gather"(%arg0, %{{.*}}) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>
  %low = stablehlo.constant dense<0> : tensor<i32>
  %last = stablehlo.constant dense<3> : tensor<i32>
  %other = stablehlo.constant dense<2> : tensor<i32>
  %0 = stablehlo.iota dim = 0 : tensor<4x1xi32>
  %1 = stablehlo.clamp %low, %0, %last : (tensor<i32>, tensor<4x1xi32>, tensor<i32>) -> tensor<4x1xi32>
  %2 = stablehlo.clamp %low, %0, %other : (tensor<i32>, tensor<4x1xi32>, tensor<i32>) -> tensor<4x1xi32>
  %3 = stablehlo.concatenate %1, %arg1, dim = 1 : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x2xi32>
  %4 = stablehlo.concatenate %2, %arg1, dim = 1 : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x2xi32>
  %5 = "stablehlo.gather"(%arg0, %3) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<4x8xf32>, tensor<4x2xi32>) -> tensor<4xf32>
  %6 = "stablehlo.gather"(%arg0, %4) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<4x8xf32>, tensor<4x2xi32>) -> tensor<4xf32>
  return %5, %6 : tensor<4xf32>, tensor<4xf32>
}

// Row i of the reshaped iota is (2 * i, 2 * i + 1).
// CHECK-LABEL: func.func @rows_that_change
func.func @rows_that_change(%arg0: tensor<4x8xf32>) -> tensor<4xf32> {
  // CHECK: #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>
  %0 = stablehlo.iota dim = 0 : tensor<8xi32>
  %1 = stablehlo.reshape %0 : (tensor<8xi32>) -> tensor<4x2xi32>
  %2 = "stablehlo.gather"(%arg0, %1) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<4x8xf32>, tensor<4x2xi32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
