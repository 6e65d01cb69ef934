// RUN: sdy-opt %s --import=%S/operators/sums.py -sdy-propagation-pipeline -sdy-partition-pipeline -split-input-file | filecheck %s

// Rows are independent, so that devices compute on the padding as well.

sdy.mesh @mesh = <["x"=4]>
// CHECK-LABEL: func.func @main
func.func @main(%arg0: tensor<7x2xf32>) -> tensor<7x2xf32> {
  %0 = sdy.sharding_constraint %arg0 <@mesh, [{"x"}, {}]> : tensor<7x2xf32>
  // CHECK: stablehlo.add %{{.*}}, %{{.*}} : tensor<2x2xf32>
  %1 = stablehlo.custom_call @doubled(%0) {sdy.operator = "doubled()",
    sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=7, j=2}, custom>} : (tensor<7x2xf32>) -> tensor<7x2xf32>
  return %1 : tensor<7x2xf32>
}

// -----

// Zero padding would add 1 per row to the sum of exponentials: the last device computes on its one row without padding.

sdy.mesh @mesh = <["x"=4]>
// CHECK-LABEL: func.func @main
func.func @main(%arg0: tensor<7x2xf32>) -> tensor<2xf32> {
  %0 = sdy.sharding_constraint %arg0 <@mesh, [{"x"}, {}]> : tensor<7x2xf32>
  // CHECK:      "stablehlo.case"
  // CHECK:      stablehlo.exponential %{{.*}} : tensor<2x2xf32>
  // CHECK:      stablehlo.exponential %{{.*}} : tensor<1x2xf32>
  // CHECK:      "stablehlo.all_reduce"
  %1 = stablehlo.custom_call @exp_sum(%0) {sdy.operator = "exp_sum()",
    sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([j]) {i=7, j=2} reduction={i}, custom>} : (tensor<7x2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// -----

// With fewer rows than devices, the last device has none and contributes zeros.

sdy.mesh @mesh = <["x"=4]>
// CHECK-LABEL: func.func @main
func.func @main(%arg0: tensor<3x2xf32>) -> tensor<2xf32> {
  %0 = sdy.sharding_constraint %arg0 <@mesh, [{"x"}, {}]> : tensor<3x2xf32>
  // CHECK:      "stablehlo.case"
  // CHECK:      stablehlo.exponential %{{.*}} : tensor<1x2xf32>
  // CHECK:      stablehlo.constant dense<0.000000e+00> : tensor<2xf32>
  // CHECK-NEXT: stablehlo.return
  // CHECK:      "stablehlo.all_reduce"
  %1 = stablehlo.custom_call @exp_sum(%0) {sdy.operator = "exp_sum()",
    sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([j]) {i=3, j=2} reduction={i}, custom>} : (tensor<3x2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
