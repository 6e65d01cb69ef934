// RUN: sdy-opt %s | filecheck %s

// A constant whose result stores its elements in another type is written with both types.
// CHECK-LABEL: @levels
func.func @levels() -> tensor<2x!quant.uniform<i8:f32, 5.000000e-01:3>> {
  // CHECK: stablehlo.constant() <{value = dense<[1, 2]> : tensor<2xi8>}> : () -> tensor<2x!quant.uniform<i8:f32, 5.000000e-01:3>>
  %0 = stablehlo.constant() {value = dense<[1, 2]> : tensor<2xi8>} : () -> tensor<2x!quant.uniform<i8:f32, 5.000000e-01:3>>
  return %0 : tensor<2x!quant.uniform<i8:f32, 5.000000e-01:3>>
}

// CHECK-LABEL: @ranges
// CHECK-SAME: tensor<2x!quant.uniform<u8<1:255>:f32:0, {2.000000e+00:1,3.000000e+00:4}>>
func.func @ranges(%arg0: tensor<2x!quant.uniform<u8<1:255>:f32:0, {2.0:1, 3.0:4}>>) -> tensor<2xf32> {
  // CHECK: stablehlo.uniform_dequantize %{{.*}} -> tensor<2xf32>
  %0 = stablehlo.uniform_dequantize %arg0 : (tensor<2x!quant.uniform<u8<1:255>:f32:0, {2.0:1, 3.0:4}>>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// CHECK-LABEL: @both_ways
func.func @both_ways(%arg0: tensor<2xf32>) -> tensor<2x!quant.uniform<i8:f32, 5.000000e-01>> {
  // CHECK: stablehlo.uniform_quantize %{{.*}} : (tensor<2xf32>) -> tensor<2x!quant.uniform<i8:f32, 5.000000e-01>>
  %0 = stablehlo.uniform_quantize %arg0 : (tensor<2xf32>) -> tensor<2x!quant.uniform<i8:f32, 5.000000e-01>>
  return %0 : tensor<2x!quant.uniform<i8:f32, 5.000000e-01>>
}
