// RUN: sdy-opt %s -sdy-fold-empty-tensors | filecheck %s

sdy.mesh @mesh = <["x"=2]>

// CHECK-LABEL: func.func @roll_by_zero
func.func @roll_by_zero(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> tensor<8x4xf32> {
  // CHECK-NEXT: %0 = stablehlo.negate %arg0
  // CHECK-NEXT: return %0
  %0 = stablehlo.slice %arg0 [0:8, 4:4] : (tensor<8x4xf32>) -> tensor<8x0xf32>
  %1 = stablehlo.concatenate %0, %arg0, dim = 1 : (tensor<8x0xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = stablehlo.negate %1 : tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}

// The constant keeps the sharding of the result.
// CHECK-LABEL: func.func @empty_result
func.func @empty_result(%arg0: tensor<8x4xf32>) -> tensor<8x0xf32> {
  // CHECK-NEXT: %[[C:.*]] = sdy.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} dense<> : tensor<8x0xf32>
  // CHECK-NEXT: return %[[C]]
  %0 = stablehlo.slice %arg0 [0:8, 4:4] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<8x4xf32>) -> tensor<8x0xf32>
  return %0 : tensor<8x0xf32>
}

// CHECK-LABEL: func.func @of_empty_operands
func.func @of_empty_operands(%arg0: tensor<8x0xf32>, %arg1: tensor<f32>, %arg2: tensor<8x4xf32>, %arg3: tensor<i32>) -> (tensor<8x4xf32>, tensor<8xf32>, tensor<8x8xf32>, tensor<8x4xf32>) {
  // CHECK-NEXT: %[[PADDED:.*]] = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<8x4xf32>
  // CHECK-NEXT: %[[SUM:.*]] = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<8xf32>
  // CHECK-NEXT: %[[PRODUCT:.*]] = sdy.constant dense<0.000000e+00> : tensor<8x8xf32>
  // CHECK-NEXT: return %[[PADDED]], %[[SUM]], %[[PRODUCT]], %arg2
  %0 = stablehlo.pad %arg0, %arg1, low = [0, 4], high = [0, 0], interior = [0, 0] : (tensor<8x0xf32>, tensor<f32>) -> tensor<8x4xf32>
  %1 = stablehlo.reduce(%arg0 init: %arg1) applies stablehlo.add across dimensions = [1] : (tensor<8x0xf32>, tensor<f32>) -> tensor<8xf32>
  %2 = stablehlo.dot_general %arg0, %arg0, contracting_dims = [1] x [1] : (tensor<8x0xf32>, tensor<8x0xf32>) -> tensor<8x8xf32>
  %3 = stablehlo.dynamic_update_slice %arg2, %arg0, %arg3, %arg3 : (tensor<8x4xf32>, tensor<8x0xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>
  return %0, %1, %2, %3 : tensor<8x4xf32>, tensor<8xf32>, tensor<8x8xf32>, tensor<8x4xf32>
}

// Calls with side effects stay.
// CHECK-LABEL: func.func @effects
func.func @effects() -> tensor<0xf32> {
  // CHECK-NEXT: stablehlo.custom_call @log()
  %0 = stablehlo.custom_call @log() {has_side_effect = true} : () -> tensor<0xf32>
  return %0 : tensor<0xf32>
}

// An empty index vector chooses the whole operand; without updates, nothing is scattered.
// CHECK-LABEL: func.func @scatters
func.func @scatters(%arg0: tensor<8x4xf32>, %arg1: tensor<8x4xf32>, %arg2: tensor<0xi32>, %arg3: tensor<0x1xi32>, %arg4: tensor<0x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  // CHECK-NEXT: %[[SUM:.*]] = "stablehlo.scatter"(%arg0, %arg2, %arg1)
  // CHECK:      return %[[SUM]], %arg0
  %0 = "stablehlo.scatter"(%arg0, %arg2, %arg1) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0, 1]>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<8x4xf32>, tensor<0xi32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = "stablehlo.scatter"(%arg0, %arg3, %arg4) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<8x4xf32>, tensor<0x1xi32>, tensor<0x4xf32>) -> tensor<8x4xf32>
  return %0, %1 : tensor<8x4xf32>, tensor<8x4xf32>
}
