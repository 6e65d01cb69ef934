// RUN: sdy-opt %s -sdy-keep-nan-in-collectives | filecheck %s

// CHECK-LABEL: func.func @maximum
// CHECK-NEXT:    %[[IS_NAN:.*]] = stablehlo.compare NE, %arg0, %arg0
// CHECK-NEXT:    %[[BITS:.*]] = stablehlo.bitcast_convert %arg0 : (tensor<8xf32>) -> tensor<8xi32>
// CHECK:         %[[IS_NEGATIVE:.*]] = stablehlo.compare LT, %[[BITS]],
// CHECK:         %[[INVERTED:.*]] = stablehlo.xor %[[BITS]],
// CHECK-NEXT:    %[[ORDERED:.*]] = stablehlo.select %[[IS_NEGATIVE]], %[[INVERTED]], %[[BITS]]
// CHECK-NEXT:    %[[GREATEST:.*]] = stablehlo.constant dense<2147483647>
// CHECK-NEXT:    %[[KEY:.*]] = stablehlo.select %[[IS_NAN]], %[[GREATEST]], %[[ORDERED]]
// CHECK-NEXT:    %[[REDUCED:.*]] = "stablehlo.all_reduce"(%[[KEY]])
// CHECK:           stablehlo.maximum %{{.*}}, %{{.*}} : tensor<i32>
// CHECK:         %[[BACK:.*]] = stablehlo.select %{{.*}}, %{{.*}}, %[[REDUCED]]
// CHECK-NEXT:    %[[RESULT:.*]] = stablehlo.bitcast_convert %[[BACK]] : (tensor<8xi32>) -> tensor<8xf32>
// CHECK-NEXT:    return %[[RESULT]]
func.func @maximum(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.all_reduce"(%arg0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = stablehlo.maximum %x, %y : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// Unchanged: integers have no NaN.
// CHECK-LABEL: func.func @maximum_of_integers
// CHECK-NEXT:    "stablehlo.all_reduce"(%arg0)
func.func @maximum_of_integers(%arg0: tensor<8xi32>) -> tensor<8xi32> {
  %0 = "stablehlo.all_reduce"(%arg0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%x: tensor<i32>, %y: tensor<i32>):
    %s = stablehlo.maximum %x, %y : tensor<i32>
    stablehlo.return %s : tensor<i32>
  }) : (tensor<8xi32>) -> tensor<8xi32>
  return %0 : tensor<8xi32>
}

// Unchanged: XLA's sums propagate NaN.
// CHECK-LABEL: func.func @sum
// CHECK-NEXT:    "stablehlo.all_reduce"(%arg0)
func.func @sum(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.all_reduce"(%arg0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
