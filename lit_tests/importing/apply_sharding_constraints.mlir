// RUN: sdy-opt %s -sdy-apply-sharding-constraints | filecheck %s

sdy.mesh @mesh = <["x"=2, "y"=2]>

// CHECK-LABEL: func.func @closed
func.func @closed(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: stablehlo.negate %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
  %0 = stablehlo.negate %arg0 : tensor<8xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"x"}]> : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// CHECK-LABEL: func.func @open
func.func @open(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: stablehlo.negate %arg0 : tensor<8xf32>
  %0 = stablehlo.negate %arg0 : tensor<8xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"x", ?}]> : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// CHECK-LABEL: func.func @conflict
func.func @conflict(%arg0: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK: stablehlo.negate %arg0 : tensor<8xf32>
  %0 = stablehlo.negate %arg0 : tensor<8xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"x"}]> : tensor<8xf32>
  %2 = sdy.sharding_constraint %0 <@mesh, [{"y"}]> : tensor<8xf32>
  return %1, %2 : tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: func.func @manual
// CHECK-SAME: %arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}
func.func @manual(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>]
      manual_axes={"x"} (%arg1: tensor<4xf32>) {
    sdy.return %arg1 : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK-LABEL: func.func @edge
func.func @edge(%arg0: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK:      %[[E:.*]] = sdy.data_flow_edge %0 : tensor<8xf32>
  // CHECK-NEXT: %[[C:.*]] = sdy.sharding_constraint %[[E]] <@mesh, [{"x"}]>
  // CHECK-NEXT: %[[N:.*]] = stablehlo.negate %[[C]]
  // CHECK-NEXT: return %[[N]], %[[C]]
  %0 = stablehlo.optimization_barrier %arg0 : tensor<8xf32>
  %1 = sdy.data_flow_edge %0 : tensor<8xf32>
  %2 = stablehlo.negate %1 : tensor<8xf32>
  %3 = sdy.sharding_constraint %1 <@mesh, [{"x"}]> : tensor<8xf32>
  return %2, %3 : tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: func.func @chain
func.func @chain(%arg0: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK:      %[[X:.*]] = stablehlo.negate %arg0
  // CHECK-NEXT: %[[BEFORE:.*]] = stablehlo.abs %[[X]]
  // CHECK-NEXT: %[[C0:.*]] = sdy.sharding_constraint %[[X]] <@mesh, [{"x"}]>
  // CHECK-NEXT: %[[C1:.*]] = sdy.sharding_constraint %[[C0]] <@mesh, [{?}]>
  // CHECK-NEXT: %[[AFTER:.*]] = stablehlo.add %[[C1]], %[[BEFORE]]
  // CHECK-NEXT: return %[[X]], %[[AFTER]]
  %0 = stablehlo.negate %arg0 : tensor<8xf32>
  %1 = stablehlo.abs %0 : tensor<8xf32>
  %2 = sdy.sharding_constraint %0 <@mesh, [{"x"}]> : tensor<8xf32>
  %3 = sdy.sharding_constraint %2 <@mesh, [{?}]> : tensor<8xf32>
  %4 = stablehlo.add %0, %1 : tensor<8xf32>
  return %0, %4 : tensor<8xf32>, tensor<8xf32>
}
