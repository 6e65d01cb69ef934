// RUN: sdy-opt %s -symbol-dce | filecheck %s

// CHECK-LABEL: func.func @main
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @used(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK-NOT: @unused
func.func private @unused(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @used_by_unused(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK: func.func private @used
func.func private @used(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  return %arg0 : tensor<8xf32>
}

// CHECK-NOT: @used_by_unused
func.func private @used_by_unused(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @unused(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
