// RUN: sdy-opt %s -sdy-draw-unsigned-bits | filecheck %s

// CHECK-LABEL: func.func @signed
// CHECK-NEXT:    %{{.*}}, %[[BITS:.*]] = stablehlo.rng_bit_generator %arg0, {{.*}} -> (tensor<2xui64>, tensor<8xui32>)
// CHECK-NEXT:    %[[DRAWN:.*]] = stablehlo.bitcast_convert %[[BITS]] : (tensor<8xui32>) -> tensor<8xi32>
// CHECK-NEXT:    return %[[DRAWN]]
func.func @signed(%arg0: tensor<2xui64>) -> tensor<8xi32> {
  %state, %0 = stablehlo.rng_bit_generator %arg0, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<8xi32>)
  return %0 : tensor<8xi32>
}

// CHECK-LABEL: func.func @floats
// CHECK:         stablehlo.bitcast_convert %{{.*}} : (tensor<8xui32>) -> tensor<8xf32>
func.func @floats(%arg0: tensor<2xui64>) -> tensor<8xf32> {
  %state, %0 = stablehlo.rng_bit_generator %arg0, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<8xf32>)
  return %0 : tensor<8xf32>
}

// CHECK-LABEL: func.func @unsigned
// CHECK-NEXT:    %{{.*}}, %[[BITS:.*]] = stablehlo.rng_bit_generator
// CHECK-NEXT:    return %[[BITS]]
func.func @unsigned(%arg0: tensor<2xui64>) -> tensor<8xui32> {
  %state, %0 = stablehlo.rng_bit_generator %arg0, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<8xui32>)
  return %0 : tensor<8xui32>
}
