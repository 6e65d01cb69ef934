// RUN: sdy-opt %s | filecheck %s

// CHECK-LABEL: func.func @convs(%arg0: tensor<2x8x8x3xf32>, %arg1: tensor<3x3x3x5xf32>, %arg2: tensor<2x2xi32>) {
func.func @convs(%arg0: tensor<2x8x8x3xf32>, %arg1: tensor<3x3x3x5xf32>, %arg2: tensor<2x2xi32>) {
  // CHECK: stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x8x8x3xf32>, tensor<3x3x3x5xf32>) -> tensor<2x6x6x5xf32>
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x8x8x3xf32>, tensor<3x3x3x5xf32>) -> tensor<2x6x6x5xf32>
  // CHECK: stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {reverse = [true, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x8x8x3xf32>, tensor<3x3x3x5xf32>) -> tensor<2x6x6x5xf32>
  %1 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {reverse = [true, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x8x8x3xf32>, tensor<3x3x3x5xf32>) -> tensor<2x6x6x5xf32>
  // CHECK: "stablehlo.dynamic_conv"(%arg0, %arg1, %arg2) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64}> : (tensor<2x8x8x3xf32>, tensor<3x3x3x5xf32>, tensor<2x2xi32>) -> tensor<2x?x?x5xf32>
  %2 = "stablehlo.dynamic_conv"(%arg0, %arg1, %arg2) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64}> : (tensor<2x8x8x3xf32>, tensor<3x3x3x5xf32>, tensor<2x2xi32>) -> tensor<2x?x?x5xf32>
  return
}
