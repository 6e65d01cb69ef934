// RUN: sdy-opt %s -sdy-flatten-call-graph | filecheck %s

// @main calls @f twice, and @f calls @g: the second call gets copies of both.

// CHECK-LABEL: func.func @main
// CHECK: call @f(
// CHECK: call @f_1(
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @f(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = call @f(%0) : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// CHECK-LABEL: func.func private @f(
// CHECK: call @g(
func.func private @f(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @g(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK-LABEL: func.func private @g(
func.func private @g(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.negate %arg0 : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK-LABEL: func.func private @g_0(
// CHECK-SAME: attributes {sdy.original_func_name = "g"}
// CHECK: stablehlo.negate

// CHECK-LABEL: func.func private @f_1(
// CHECK-SAME: attributes {sdy.original_func_name = "f"}
// CHECK: call @g_0(
