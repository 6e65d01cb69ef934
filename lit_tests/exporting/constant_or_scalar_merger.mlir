// RUN: sdy-opt %s -sdy-constant-or-scalar-merger | filecheck %s

sdy.mesh @mesh = <["x"=2]>

// CHECK-LABEL: func.func @main
func.func @main(%arg0: tensor<f32>) -> tensor<8xf32> {
  // CHECK-NEXT: %0 = sdy.constant dense<1.000000e+00> : tensor<8xf32>
  // CHECK-NEXT: %1 = stablehlo.add %0, %0
  %0 = sdy.constant dense<1.0> : tensor<8xf32>
  %1 = sdy.constant dense<1.0> : tensor<8xf32>
  %2 = stablehlo.add %0, %1 : tensor<8xf32>
  // A constant with another sharding is not merged.
  // CHECK-NEXT: %2 = sdy.constant
  // CHECK-NEXT: %3 = stablehlo.add %1, %2
  %3 = sdy.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} dense<1.0> : tensor<8xf32>
  %4 = stablehlo.add %2, %3 : tensor<8xf32>
  // CHECK-NEXT: %4 = stablehlo.broadcast_in_dim %arg0
  // CHECK-NEXT: %5 = stablehlo.add %4, %4
  // CHECK-NEXT: stablehlo.add %3, %5
  %5 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> tensor<8xf32>
  %6 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> tensor<8xf32>
  %7 = stablehlo.add %5, %6 : tensor<8xf32>
  %8 = stablehlo.add %4, %7 : tensor<8xf32>
  return %8 : tensor<8xf32>
}

// CHECK-LABEL: func.func @of_both_dialects
func.func @of_both_dialects() -> tensor<8xf32> {
  // CHECK-NEXT: %[[C:.*]] = stablehlo.constant dense<1.000000e+00> : tensor<8xf32>
  // CHECK-NEXT: stablehlo.add %[[C]], %[[C]]
  %0 = stablehlo.constant dense<1.0> : tensor<8xf32>
  %1 = sdy.constant dense<1.0> : tensor<8xf32>
  %2 = stablehlo.add %0, %1 : tensor<8xf32>
  return %2 : tensor<8xf32>
}
