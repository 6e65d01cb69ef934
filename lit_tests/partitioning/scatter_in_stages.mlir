// RUN: sdy-opt %s -sdy-scatter-in-stages | filecheck %s

sdy.mesh @mesh = <["x"=4]>

// CHECK-LABEL: func.func @product
// CHECK-DAG:     %[[ONES:.*]] = stablehlo.constant {{.*}}[{"x"}, {}, {}]{{.*}} dense<1.000000e+00> : tensor<4x8x2xf32>
// CHECK-DAG:     %[[INDICES:.*]] = stablehlo.reshape %arg1 {{.*}}[{"x"}, {}, {}]{{.*}} -> tensor<4x16x1xi32>
// CHECK-DAG:     %[[UPDATES:.*]] = stablehlo.reshape %arg2 {{.*}}[{"x"}, {}, {}]{{.*}} -> tensor<4x16x2xf32>
// CHECK:         %[[PARTS:.*]] = "stablehlo.scatter"(%[[ONES]], %[[INDICES]], %[[UPDATES]])
// CHECK-SAME:      update_window_dims = [2], inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2
// CHECK:         %[[TOTAL:.*]] = stablehlo.reduce(%[[PARTS]] init: {{.*}}) applies stablehlo.multiply across dimensions = [0]
// CHECK-NEXT:    %[[RESULT:.*]] = stablehlo.multiply %arg0, %[[TOTAL]]
// CHECK-NEXT:    return %[[RESULT]]
func.func @product(%arg0: tensor<8x2xf32>, %arg1: tensor<64x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg2: tensor<64x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x2xf32> {
  %0 = "stablehlo.scatter"(%arg0, %arg1, %arg2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
    %1 = stablehlo.multiply %arg3, %arg4 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<8x2xf32>, tensor<64x1xi32>, tensor<64x2xf32>) -> tensor<8x2xf32>
  return %0 : tensor<8x2xf32>
}

// Unchanged: an all-reduce combines the partial sums.
// CHECK-LABEL: func.func @sum
// CHECK-NEXT:    "stablehlo.scatter"(%arg0, %arg1, %arg2)
func.func @sum(%arg0: tensor<8x2xf32>, %arg1: tensor<64x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg2: tensor<64x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x2xf32> {
  %0 = "stablehlo.scatter"(%arg0, %arg1, %arg2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
    %1 = stablehlo.add %arg3, %arg4 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<8x2xf32>, tensor<64x1xi32>, tensor<64x2xf32>) -> tensor<8x2xf32>
  return %0 : tensor<8x2xf32>
}

// Unchanged: the updates are smaller than the partial results.
// CHECK-LABEL: func.func @few_updates
// CHECK-NEXT:    "stablehlo.scatter"(%arg0, %arg1, %arg2)
func.func @few_updates(%arg0: tensor<64x2xf32>, %arg1: tensor<8x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg2: tensor<8x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<64x2xf32> {
  %0 = "stablehlo.scatter"(%arg0, %arg1, %arg2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
    %1 = stablehlo.multiply %arg3, %arg4 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<64x2xf32>, tensor<8x1xi32>, tensor<8x2xf32>) -> tensor<64x2xf32>
  return %0 : tensor<64x2xf32>
}
