// RUN: sdy-opt %s -canonicalize | filecheck %s
// RUN: sdy-opt %s -canonicalize='enable-patterns=sdy-collective' | filecheck %s --check-prefix=COLLECTIVES

sdy.mesh @mesh = <["x"=2]>

// CHECK-LABEL: func.func @dead_operations
func.func @dead_operations(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: return %arg0
  %0 = stablehlo.negate %arg0 : tensor<8xf32>
  %1 = stablehlo.abs %0 : tensor<8xf32>
  return %arg0 : tensor<8xf32>
}

// CHECK-LABEL: func.func @constants
func.func @constants(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: %cst = stablehlo.constant dense<2.000000e+00> : tensor<8xf32>
  // CHECK-NEXT: %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<8xf32>
  // CHECK-NEXT: %0 = stablehlo.negate %arg0
  // CHECK-NEXT: %1 = stablehlo.add %0, %cst_0
  // CHECK-NEXT: %2 = stablehlo.multiply %1, %cst
  // CHECK-NEXT: %3 = stablehlo.add %2, %cst_0
  %0 = stablehlo.negate %arg0 : tensor<8xf32>
  %cst = stablehlo.constant dense<1.0> : tensor<8xf32>
  %1 = stablehlo.add %0, %cst : tensor<8xf32>
  %cst_0 = stablehlo.constant dense<2.0> : tensor<8xf32>
  %2 = stablehlo.multiply %1, %cst_0 : tensor<8xf32>
  %cst_1 = stablehlo.constant dense<1.0> : tensor<8xf32>
  %3 = stablehlo.add %2, %cst_1 : tensor<8xf32>
  return %3 : tensor<8xf32>
}

// CHECK-LABEL: func.func @reshards
// COLLECTIVES-LABEL: func.func @reshards
func.func @reshards(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // COLLECTIVES-NEXT: sdy.reshard
  // COLLECTIVES-NEXT: sdy.reshard
  // CHECK-NEXT: %0 = sdy.reshard %arg0 <@mesh, [{"x"}]>
  // CHECK-NEXT: return %0
  %0 = sdy.reshard %arg0 <@mesh, [{}]> : tensor<8xf32>
  %1 = sdy.reshard %0 <@mesh, [{"x"}]> : tensor<8xf32>
  return %1 : tensor<8xf32>
}
