// RUN: sdy-opt %s -cse | filecheck %s

sdy.mesh @mesh = <["x"=2]>

// CHECK-LABEL: func.func @equal_operations
func.func @equal_operations(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: %0 = stablehlo.negate %arg0 : tensor<8xf32>
  // CHECK-NEXT: %1 = stablehlo.add %0, %0 : tensor<8xf32>
  // CHECK-NEXT: return %1
  %0 = stablehlo.negate %arg0 : tensor<8xf32>
  %1 = stablehlo.negate %arg0 : tensor<8xf32>
  %2 = stablehlo.add %0, %1 : tensor<8xf32>
  return %2 : tensor<8xf32>
}

// Operations with different shardings, and barriers, are not merged.
// CHECK-LABEL: func.func @different_operations
func.func @different_operations(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: %0 = stablehlo.negate %arg0 : tensor<8xf32>
  // CHECK-NEXT: %1 = stablehlo.negate %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
  // CHECK-NEXT: %2 = sdy.constant
  // CHECK-NEXT: %3 = stablehlo.add %0, %1
  %0 = stablehlo.negate %arg0 : tensor<8xf32>
  %1 = stablehlo.negate %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
  %2 = sdy.constant dense<1.0> : tensor<8xf32>
  %3 = sdy.constant dense<1.0> : tensor<8xf32>
  %4 = stablehlo.add %0, %1 : tensor<8xf32>
  %5 = stablehlo.add %4, %2 : tensor<8xf32>
  %6 = stablehlo.add %5, %3 : tensor<8xf32>
  return %6 : tensor<8xf32>
}

// An operation in a region is merged with an equal one before the region, but not the other way round.
// CHECK-LABEL: func.func @regions
func.func @regions(%arg0: tensor<8xf32>, %arg1: tensor<i1>) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK-NEXT: %0 = stablehlo.negate %arg0
  // CHECK-NEXT: "stablehlo.if"(%arg1)
  // CHECK-NEXT: stablehlo.return %0
  // CHECK: stablehlo.abs %arg0
  // CHECK: stablehlo.abs %arg0
  %0 = stablehlo.negate %arg0 : tensor<8xf32>
  %1 = "stablehlo.if"(%arg1) ({
    %3 = stablehlo.negate %arg0 : tensor<8xf32>
    stablehlo.return %3 : tensor<8xf32>
  }, {
    %3 = stablehlo.abs %arg0 : tensor<8xf32>
    stablehlo.return %3 : tensor<8xf32>
  }) : (tensor<i1>) -> tensor<8xf32>
  %2 = stablehlo.abs %arg0 : tensor<8xf32>
  %4 = stablehlo.add %2, %0 : tensor<8xf32>
  return %1, %4 : tensor<8xf32>, tensor<8xf32>
}
