// RUN: sdy-opt %s | sdy-opt | filecheck %s

// CHECK-LABEL: func.func @shapes(%arg0: tensor<?x8xf32>, %arg1: tensor<4x8xf32>, %arg2: tensor<i32>, %arg3: tensor<2xi32>, %arg4: tensor<f32>) {
func.func @shapes(%arg0: tensor<?x8xf32>, %arg1: tensor<4x8xf32>, %arg2: tensor<i32>, %arg3: tensor<2xi32>, %arg4: tensor<f32>) {
  // CHECK: stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x8xf32>) -> tensor<i32>
  %0 = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x8xf32>) -> tensor<i32>
  // CHECK: stablehlo.set_dimension_size %arg1, %arg2, dim = 0 : (tensor<4x8xf32>, tensor<i32>) -> tensor<?x8xf32, #stablehlo.bounds<4, ?>>
  %1 = stablehlo.set_dimension_size %arg1, %arg2, dim = 0 : (tensor<4x8xf32>, tensor<i32>) -> tensor<?x8xf32, #stablehlo.bounds<4, ?>>
  // CHECK: stablehlo.dynamic_reshape %arg0, %arg3 : (tensor<?x8xf32>, tensor<2xi32>) -> tensor<?x4xf32>
  %2 = stablehlo.dynamic_reshape %arg0, %arg3 : (tensor<?x8xf32>, tensor<2xi32>) -> tensor<?x4xf32>
  // CHECK: stablehlo.dynamic_broadcast_in_dim %arg0, %arg3, dims = [0, 1] {known_expanding_dimensions = array<i64: 0>} : (tensor<?x8xf32>, tensor<2xi32>) -> tensor<?x8xf32>
  %3 = stablehlo.dynamic_broadcast_in_dim %arg0, %arg3, dims = [0, 1] {known_expanding_dimensions = array<i64: 0>} : (tensor<?x8xf32>, tensor<2xi32>) -> tensor<?x8xf32>
  // CHECK: stablehlo.dynamic_iota %arg3, dim = 1 : (tensor<2xi32>) -> tensor<?x4xi32>
  %4 = stablehlo.dynamic_iota %arg3, dim = 1 : (tensor<2xi32>) -> tensor<?x4xi32>
  // CHECK: stablehlo.real_dynamic_slice %arg0, %arg3, %arg3, %arg3 : (tensor<?x8xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>
  %5 = stablehlo.real_dynamic_slice %arg0, %arg3, %arg3, %arg3 : (tensor<?x8xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>
  // CHECK: stablehlo.dynamic_pad %arg0, %arg4, %arg3, %arg3, %arg3 : (tensor<?x8xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>
  %6 = stablehlo.dynamic_pad %arg0, %arg4, %arg3, %arg3, %arg3 : (tensor<?x8xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>
  // CHECK: stablehlo.broadcast %arg1, sizes = [2, 3] : (tensor<4x8xf32>) -> tensor<2x3x4x8xf32>
  %7 = stablehlo.broadcast %arg1, sizes = [2, 3] : (tensor<4x8xf32>) -> tensor<2x3x4x8xf32>
  // CHECK: stablehlo.slice %arg1 [1:4:3, 0:8] : (tensor<4x8xf32>) -> tensor<1x8xf32>
  %8 = stablehlo.slice %arg1 [1:4:3, 0:8] : (tensor<4x8xf32>) -> tensor<1x8xf32>
  // MLIR prints a slice of a number like this, but does not read it.
  // CHECK: stablehlo.dynamic_slice %arg4, , sizes = [] : (tensor<f32>) -> tensor<f32>
  %number = "stablehlo.dynamic_slice"(%arg4) <{slice_sizes = array<i64>}> : (tensor<f32>) -> tensor<f32>
  // CHECK: stablehlo.add %arg0, %arg0 : tensor<?x8xf32>
  %9 = stablehlo.add %arg0, %arg0 : tensor<?x8xf32>
  // CHECK: stablehlo.add %arg0, %arg1 : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x8xf32>
  %10 = stablehlo.add %arg0, %arg1 : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x8xf32>
  return
}
