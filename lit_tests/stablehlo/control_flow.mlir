// RUN: sdy-opt %s | filecheck %s

// CHECK-LABEL: func.func @barrier(%arg0: tensor<4xf32>) {
func.func @barrier(%arg0: tensor<4xf32>) {
  // CHECK: stablehlo.optimization_barrier()
  stablehlo.optimization_barrier()
  // CHECK: stablehlo.optimization_barrier %arg0 : tensor<4xf32>
  %0 = stablehlo.optimization_barrier %arg0 : tensor<4xf32>
  return
}

// CHECK-LABEL: func.func @if(%arg0: tensor<i1>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
func.func @if(%arg0: tensor<i1>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: "stablehlo.if"(%arg0) ({
  %0 = "stablehlo.if"(%arg0) ({
    // CHECK: stablehlo.return %arg1 : tensor<4xf32>
    stablehlo.return %arg1 : tensor<4xf32>
  }, {
    // CHECK: stablehlo.negate %arg1 : tensor<4xf32>
    %1 = stablehlo.negate %arg1 : tensor<4xf32>
    // CHECK: stablehlo.return %1 : tensor<4xf32>
    stablehlo.return %1 : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @no_carry() {
func.func @no_carry() {
  // CHECK: stablehlo.while()
  stablehlo.while()
  cond {
    // CHECK: stablehlo.constant dense<false> : tensor<i1>
    %c = stablehlo.constant dense<false> : tensor<i1>
    // CHECK: stablehlo.return %c : tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    // CHECK: stablehlo.return
    stablehlo.return
  }
  return
}

// CHECK-LABEL: func.func @while_attr(%arg0: tensor<i32>) -> tensor<i32> {
func.func @while_attr(%arg0: tensor<i32>) -> tensor<i32> {
  // CHECK: stablehlo.while(%iterArg = %arg0) : tensor<i32> attributes {mhlo.frontend_attributes = {x = "y"}}
  %0 = stablehlo.while(%iterArg = %arg0) : tensor<i32> attributes {mhlo.frontend_attributes = {x = "y"}}
  cond {
    // CHECK: stablehlo.compare LT, %iterArg, %arg0 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %1 = stablehlo.compare LT, %iterArg, %arg0 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    // CHECK: stablehlo.return %1 : tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    // CHECK: stablehlo.return %iterArg : tensor<i32>
    stablehlo.return %iterArg : tensor<i32>
  }
  return %0 : tensor<i32>
}
