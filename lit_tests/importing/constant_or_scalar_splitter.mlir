// RUN: sdy-opt %s -sdy-constant-or-scalar-splitter | filecheck %s

// CHECK-LABEL: func.func @constant
func.func @constant(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: %0 = sdy.constant dense<1.000000e+00> : tensor<8xf32>
  // CHECK-NEXT: %1 = sdy.constant dense<1.000000e+00> : tensor<8xf32>
  // CHECK-NEXT: %2 = stablehlo.add %arg0, %0 : tensor<8xf32>
  // CHECK-NEXT: %3 = stablehlo.multiply %2, %1 : tensor<8xf32>
  // CHECK-NEXT: return %3
  %c = stablehlo.constant dense<1.0> : tensor<8xf32>
  %0 = stablehlo.add %arg0, %c : tensor<8xf32>
  %1 = stablehlo.multiply %0, %c : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// CHECK-LABEL: func.func @computed_from_constants
func.func @computed_from_constants(%arg0: tensor<8xi32>) -> tensor<8xi32> {
  // CHECK-NEXT: %[[I:.*]] = stablehlo.iota dim = 0 : tensor<8xi32>
  // CHECK-NEXT: %[[I2:.*]] = stablehlo.iota dim = 0 : tensor<8xi32>
  // CHECK-NEXT: %[[TWICE:.*]] = stablehlo.add %[[I]], %[[I]] : tensor<8xi32>
  // CHECK-NEXT: %[[TWICE2:.*]] = stablehlo.add %[[I2]], %[[I2]] : tensor<8xi32>
  // CHECK-NEXT: %[[FIRST:.*]] = stablehlo.add %arg0, %[[TWICE]] : tensor<8xi32>
  // CHECK-NEXT: stablehlo.multiply %[[FIRST]], %[[TWICE2]] : tensor<8xi32>
  %0 = stablehlo.iota dim = 0 : tensor<8xi32>
  %1 = stablehlo.add %0, %0 : tensor<8xi32>
  %2 = stablehlo.add %arg0, %1 : tensor<8xi32>
  %3 = stablehlo.multiply %2, %1 : tensor<8xi32>
  return %3 : tensor<8xi32>
}

// CHECK-LABEL: func.func @scalar
func.func @scalar(%arg0: tensor<8xf32>, %arg1: tensor<f32>) -> tensor<8xf32> {
  // CHECK-NEXT: %0 = stablehlo.negate %arg1 : tensor<f32>
  // CHECK-NEXT: %1 = stablehlo.broadcast_in_dim %0, dims = []
  // CHECK-NEXT: %2 = stablehlo.broadcast_in_dim %0, dims = []
  // CHECK-NEXT: %3 = stablehlo.add %arg0, %1
  // CHECK-NEXT: %4 = stablehlo.multiply %3, %2
  %0 = stablehlo.negate %arg1 : tensor<f32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<8xf32>
  %2 = stablehlo.add %arg0, %1 : tensor<8xf32>
  %3 = stablehlo.multiply %2, %1 : tensor<8xf32>
  return %3 : tensor<8xf32>
}

// CHECK-LABEL: func.func @called
func.func @called(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK:      %[[D0:.*]] = call @double_0
  // CHECK-NEXT: %[[D1:.*]] = call @double_1
  // CHECK-NEXT: %[[SUM:.*]] = stablehlo.add %arg0, %[[D0]]
  // CHECK-NEXT: stablehlo.multiply %[[SUM]], %[[D1]]
  %c = stablehlo.constant dense<1.0> : tensor<8xf32>
  %0 = call @double(%c) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = stablehlo.add %arg0, %0 : tensor<8xf32>
  %2 = stablehlo.multiply %1, %0 : tensor<8xf32>
  return %2 : tensor<8xf32>
}

func.func private @double(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.add %arg0, %arg0 : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK-LABEL: func.func @groups
func.func @groups(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: %0 = sdy.constant
  // CHECK-NEXT: sdy.sharding_group %0 group_id=3
  // CHECK-NEXT: %1 = sdy.constant
  // CHECK-NEXT: sdy.sharding_group %1 group_id=3
  // CHECK-NEXT: %2 = stablehlo.add %arg0, %0
  // CHECK-NEXT: %3 = stablehlo.multiply %2, %1
  %c = stablehlo.constant dense<1.0> : tensor<8xf32>
  sdy.sharding_group %c group_id=3 : tensor<8xf32>
  %0 = stablehlo.add %arg0, %c : tensor<8xf32>
  %1 = stablehlo.multiply %0, %c : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// A scalar is not copied, nor are the constants from which it is computed.
// CHECK-LABEL: func.func @scalar_of_an_iota
func.func @scalar_of_an_iota(%arg0: tensor<1xi32>) -> (tensor<1xi32>, tensor<i32>) {
  // CHECK-NEXT: %[[COPY:.*]] = stablehlo.iota dim = 0 : tensor<1xi32>
  // CHECK-NEXT: %[[KEPT:.*]] = stablehlo.iota dim = 0 : tensor<1xi32>
  // CHECK-NEXT: %[[SCALAR:.*]] = stablehlo.reshape %[[KEPT]] : (tensor<1xi32>) -> tensor<i32>
  // CHECK-NEXT: %[[SUM:.*]] = stablehlo.add %arg0, %[[COPY]] : tensor<1xi32>
  // CHECK-NEXT: return %[[SUM]], %[[SCALAR]]
  %0 = stablehlo.iota dim = 0 : tensor<1xi32>
  %1 = stablehlo.reshape %0 : (tensor<1xi32>) -> tensor<i32>
  %2 = stablehlo.add %arg0, %0 : tensor<1xi32>
  return %2, %1 : tensor<1xi32>, tensor<i32>
}

// CHECK-LABEL: func.func @scalar_of_a_scalar
func.func @scalar_of_a_scalar(%arg0: tensor<i32>) -> tensor<i32> {
  // CHECK-NEXT: %0 = stablehlo.broadcast_in_dim %arg0, dims = []
  // CHECK-NEXT: %1 = stablehlo.add %0, %0
  %0 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<i32>) -> tensor<i32>
  %1 = stablehlo.add %0, %0 : tensor<i32>
  return %1 : tensor<i32>
}

// CHECK: func.func private @double_0
// CHECK-SAME: attributes {sdy.original_func_name = "double"}
// CHECK: func.func private @double_1
