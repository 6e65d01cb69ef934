// RUN: sdy-opt %s -sdy-populate-op-sharding-rules -verify-diagnostics | filecheck %s
// RUN: sdy-opt %s -sdy-populate-op-sharding-rules='conservative-propagation=true' | filecheck %s --check-prefix=CONSERVATIVE

// CHECK-LABEL: func.func @every_kind_of_factor
func.func @every_kind_of_factor(%arg0: tensor<4x8xf32>, %arg1: tensor<8x6xf32>) -> tensor<4x9xf32> {
  // CHECK: stablehlo.dot_general
  // CHECK-SAME: #sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=4, j=6, k=8} reduction={k}>
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  // CHECK: stablehlo.cosine
  // CHECK-SAME: #sdy.op_sharding_rule<([i, j])->([i, j]) {i=4, j=6}>
  %1 = stablehlo.cosine %0 : tensor<4x6xf32>
  // CHECK: stablehlo.slice
  // CHECK-SAME: #sdy.op_sharding_rule<([i, j])->([i, j]) {i=4, j=6} permutation={j}>
  // CONSERVATIVE: stablehlo.slice
  // CONSERVATIVE-SAME: #sdy.op_sharding_rule<([i, j])->([i, j]) {i=4, j=6} permutation={j} blocked_propagation={j}>
  %2 = stablehlo.slice %1 [0:4, 0:3] : (tensor<4x6xf32>) -> tensor<4x3xf32>
  // CHECK: stablehlo.concatenate
  // CHECK-SAME: #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=4, j=9} permutation={j}>
  // CONSERVATIVE: stablehlo.concatenate
  // CONSERVATIVE-SAME: #sdy.op_sharding_rule<([i, j], [i, k])->([i, l]) {i=4, j=1, k=1, l=1}>
  %3 = stablehlo.concatenate %1, %2, dim = 1 : (tensor<4x6xf32>, tensor<4x3xf32>) -> tensor<4x9xf32>
  return %3 : tensor<4x9xf32>
}

// CHECK-LABEL: func.func @reshape_merges_and_splits
func.func @reshape_merges_and_splits(%arg0: tensor<2x4x3xf32>) -> tensor<4x6xf32> {
  // CHECK: stablehlo.reshape
  // CHECK-SAME: #sdy.op_sharding_rule<([i, jk, l])->([ij, kl]) {i=2, j=2, k=2, l=3}>
  %0 = stablehlo.reshape %arg0 : (tensor<2x4x3xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: func.func @given_rule_is_kept
func.func @given_rule_is_kept(%arg0: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // CHECK: stablehlo.custom_call @my_softmax
  // CHECK-SAME: #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=4} need_replication={j}, custom>
  %0 = stablehlo.custom_call @my_softmax(%arg0) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=4} need_replication={j}, custom>} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// CHECK-LABEL: func.func @no_rule
func.func @no_rule(%arg0: tensor<0x4xf32>) -> tensor<8x2xui64> {
  // CHECK-NOT: sdy.sharding_rule
  // expected-warning@+1 {{custom call @nobody_knows_this is unknown to SDY sharding rule registry}}
  %0 = stablehlo.custom_call @nobody_knows_this(%arg0) : (tensor<0x4xf32>) -> tensor<0x4xf32>
  %1 = stablehlo.reshape %0 : (tensor<0x4xf32>) -> tensor<4x0xf32>
  %2 = stablehlo.iota dim = 0 : tensor<8x2xui64>
  return %2 : tensor<8x2xui64>
}
