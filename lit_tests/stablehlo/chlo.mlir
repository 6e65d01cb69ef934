// RUN: sdy-opt %s | filecheck %s

// CHECK-LABEL: func.func @chlo(%arg0: tensor<4xf32>, %arg1: tensor<4x4xf32>, %arg2: tensor<4xi1>, %arg3: tensor<4xcomplex<f32>>, %arg4: tensor<4xi32>, %arg5: tensor<3x4x5xf32>, %arg6: tensor<3xi64>) {
func.func @chlo(%arg0: tensor<4xf32>, %arg1: tensor<4x4xf32>, %arg2: tensor<4xi1>, %arg3: tensor<4xcomplex<f32>>, %arg4: tensor<4xi32>, %arg5: tensor<3x4x5xf32>, %arg6: tensor<3xi64>) {
  // CHECK: chlo.broadcast_divide %arg0, %arg1 : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %0 = chlo.broadcast_divide %arg0, %arg1 : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: chlo.broadcast_maximum %arg0, %arg1 : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = chlo.broadcast_maximum %arg0, %arg1 : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: chlo.broadcast_minimum %arg0, %arg1 : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = chlo.broadcast_minimum %arg0, %arg1 : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: chlo.broadcast_multiply %arg0, %arg1 : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = chlo.broadcast_multiply %arg0, %arg1 : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: chlo.broadcast_next_after %arg0, %arg1 : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = chlo.broadcast_next_after %arg0, %arg1 : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: chlo.broadcast_polygamma %arg0, %arg1 : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %5 = chlo.broadcast_polygamma %arg0, %arg1 : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: chlo.broadcast_power %arg0, %arg1 : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %6 = chlo.broadcast_power %arg0, %arg1 : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: chlo.broadcast_remainder %arg0, %arg1 : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %7 = chlo.broadcast_remainder %arg0, %arg1 : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: chlo.broadcast_subtract %arg0, %arg1 : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %8 = chlo.broadcast_subtract %arg0, %arg1 : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: chlo.broadcast_atan2 %arg0, %arg1 : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %9 = chlo.broadcast_atan2 %arg0, %arg1 : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: chlo.broadcast_and %arg4, %arg4 : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %10 = chlo.broadcast_and %arg4, %arg4 : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  // CHECK: chlo.broadcast_or %arg4, %arg4 : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %11 = chlo.broadcast_or %arg4, %arg4 : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  // CHECK: chlo.broadcast_xor %arg4, %arg4 : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %12 = chlo.broadcast_xor %arg4, %arg4 : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  // CHECK: chlo.broadcast_shift_left %arg4, %arg4 : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %13 = chlo.broadcast_shift_left %arg4, %arg4 : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  // CHECK: chlo.broadcast_shift_right_arithmetic %arg4, %arg4 : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %14 = chlo.broadcast_shift_right_arithmetic %arg4, %arg4 : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  // CHECK: chlo.broadcast_shift_right_logical %arg4, %arg4 : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %15 = chlo.broadcast_shift_right_logical %arg4, %arg4 : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  // CHECK: chlo.broadcast_complex %arg0, %arg0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xcomplex<f32>>
  %16 = chlo.broadcast_complex %arg0, %arg0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xcomplex<f32>>
  // CHECK: chlo.is_neg_inf %arg0 : tensor<4xf32> -> tensor<4xi1>
  %17 = chlo.is_neg_inf %arg0 : tensor<4xf32> -> tensor<4xi1>
  // CHECK: chlo.is_pos_inf %arg0 : tensor<4xf32> -> tensor<4xi1>
  %18 = chlo.is_pos_inf %arg0 : tensor<4xf32> -> tensor<4xi1>
  // CHECK: chlo._asin_acos_kernel %arg3 : tensor<4xcomplex<f32>> -> tensor<4xcomplex<f32>>
  %19 = chlo._asin_acos_kernel %arg3 : tensor<4xcomplex<f32>> -> tensor<4xcomplex<f32>>
  // CHECK: "chlo.ragged_dot"(%arg1, %arg5, %arg6) <{precision_config = [#chlo<precision DEFAULT>, #chlo<precision DEFAULT>], ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}> : (tensor<4x4xf32>, tensor<3x4x5xf32>, tensor<3xi64>) -> tensor<4x5xf32>
  %20 = "chlo.ragged_dot"(%arg1, %arg5, %arg6) <{precision_config = [#chlo<precision DEFAULT>, #chlo<precision DEFAULT>], ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}> : (tensor<4x4xf32>, tensor<3x4x5xf32>, tensor<3xi64>) -> tensor<4x5xf32>
  // CHECK: chlo.broadcast_add %arg0, %arg1 : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %21 = chlo.broadcast_add %arg0, %arg1 : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: chlo.broadcast_add %arg0, %arg1 {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %22 = chlo.broadcast_add %arg0, %arg1 {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: chlo.broadcast_compare %arg0, %arg1 {compare_type = #chlo<comparison_type FLOAT>, comparison_direction = #chlo<comparison_direction LT>} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4x4xi1>
  %23 = chlo.broadcast_compare %arg0, %arg1 {compare_type = #chlo<comparison_type FLOAT>, comparison_direction = #chlo<comparison_direction LT>} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4x4xi1>
  // CHECK: chlo.broadcast_select %arg2, %arg0, %arg0 : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %24 = chlo.broadcast_select %arg2, %arg0, %arg0 : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: chlo.is_inf %arg0 : tensor<4xf32> -> tensor<4xi1>
  %25 = chlo.is_inf %arg0 : tensor<4xf32> -> tensor<4xi1>
  // CHECK: chlo.conj %arg3 : tensor<4xcomplex<f32>> -> tensor<4xcomplex<f32>>
  %26 = chlo.conj %arg3 : tensor<4xcomplex<f32>> -> tensor<4xcomplex<f32>>
  // CHECK: chlo.tan %arg0 : tensor<4xf32> -> tensor<4xf32>
  %27 = chlo.tan %arg0 : tensor<4xf32> -> tensor<4xf32>
  // CHECK: chlo.asin %arg0 : tensor<4xf32> -> tensor<4xf32>
  %asin = chlo.asin %arg0 : tensor<4xf32> -> tensor<4xf32>
  // CHECK: chlo.lgamma %arg0 : tensor<4xf32> -> tensor<4xf32>
  %lgamma = chlo.lgamma %arg0 : tensor<4xf32> -> tensor<4xf32>
  // CHECK: "chlo.constant_like"(%arg0) <{value = 1.000000e+00 : f32}> : (tensor<4xf32>) -> tensor<4xf32>
  %28 = "chlo.constant_like"(%arg0) <{value = 1.000000e+00 : f32}> : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: chlo.constant dense<1.000000e+00> : tensor<4xf32>
  %29 = chlo.constant dense<1.000000e+00> : tensor<4xf32>
  // CHECK: chlo.constant {x} dense<1> : tensor<4xi32>
  %30 = chlo.constant {x} dense<1> : tensor<4xi32>
  %values, %indices = chlo.top_k(%arg0, k = 2) : tensor<4xf32> -> (tensor<2xf32>, tensor<2xi32>)
  // CHECK: chlo.broadcast_zeta %arg0, %arg0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %31 = chlo.broadcast_zeta %arg0, %arg0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// CHECK-LABEL: func.func @scan(%arg0: tensor<4x3xf32>, %arg1: tensor<3xf32>) {
func.func @scan(%arg0: tensor<4x3xf32>, %arg1: tensor<3xf32>) {
  // CHECK: chlo.scan(%arg0) inits (%arg1) dimension=0  {
  %0:2 = chlo.scan(%arg0) inits (%arg1) dimension=0  {
  ^bb0(%input: tensor<3xf32>, %carry: tensor<3xf32>):
    // CHECK: stablehlo.add %input, %carry : tensor<3xf32>
    %1 = stablehlo.add %input, %carry : tensor<3xf32>
    // CHECK: stablehlo.return %1, %1 : tensor<3xf32>, tensor<3xf32>
    stablehlo.return %1, %1 : tensor<3xf32>, tensor<3xf32>
  } : (tensor<4x3xf32>, tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>)
  return
}
