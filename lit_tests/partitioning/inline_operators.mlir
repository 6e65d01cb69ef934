// RUN: not sdy-opt %s -sdy-inline-operators 2>&1 | filecheck %s

func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.custom_call @of_another_library(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  // CHECK: inline_operators.mlir:6:8: error: no operator 'double' is registered: import what registers it
  %1 = stablehlo.custom_call @double(%0) {sdy.operator = "double()"} : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
