// RUN: sdy-opt %s -sdy-drop-sharding-rules | filecheck %s

// CHECK-LABEL: func.func @only_custom_rules_stay
func.func @only_custom_rules_stay(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: %{{.*}} = stablehlo.negate %arg0 : tensor<8xf32>
  %0 = stablehlo.negate %arg0 {sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=8}>} : tensor<8xf32>
  // CHECK-NEXT: stablehlo.custom_call @mine
  // CHECK-SAME: {sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=8}, custom>}
  %1 = stablehlo.custom_call @mine(%0) {sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=8}, custom>} : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
