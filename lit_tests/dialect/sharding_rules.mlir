// RUN: sdy-opt %s | filecheck %s
// RUN: sdy-opt %s --mlir-print-op-generic | sdy-opt | filecheck %s

// CHECK-LABEL: func.func @kinds
func.func @kinds(%arg0: tensor<8x4xf32>, %arg1: tensor<4x2xf32>) -> tensor<8x2xf32> {
  // CHECK-NEXT: stablehlo.dot_general
  // CHECK-SAME: sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [j, k])->([i, k]) {i=8, j=4, k=2} reduction={j} need_replication={i} permutation={k} blocked_propagation={i, j}, custom>
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j],[j, k])->([i, k]) {i=8,j=4,k=2} reduction={j} need_replication={i} permutation={k} blocked_propagation={i, j}, custom>} : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  return %0 : tensor<8x2xf32>
}

// CHECK-LABEL: func.func @compound
func.func @compound(%arg0: tensor<8x4xf32>) -> tensor<32xf32> {
  // CHECK-NEXT: {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([ij]) {i=8, j=4}>}
  %0 = stablehlo.reshape %arg0 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([ij]) {i=8, j=4}>} : (tensor<8x4xf32>) -> tensor<32xf32>
  return %0 : tensor<32xf32>
}

// CHECK-LABEL: func.func @scalar
func.func @scalar(%arg0: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: {sdy.sharding_rule = #sdy.op_sharding_rule<([])->([])>}
  %0 = stablehlo.negate %arg0 {sdy.sharding_rule = #sdy.op_sharding_rule<([])->([])>} : tensor<f32>
  return %0 : tensor<f32>
}

// After the eighteen letters from i to z come z_1, z_2, ...
// CHECK-LABEL: func.func @many_factors
func.func @many_factors(%arg0: tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x2x3x5xf32>) -> tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x30xf32> {
  // CHECK-NEXT: ([i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, z_1, z_2])->([i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, zz_1z_2])
  // CHECK-SAME: y=1, z=2, z_1=3, z_2=5}>
  %0 = stablehlo.reshape %arg0 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, z_1, z_2])->([i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, zz_1z_2]) {i=1, j=1, k=1, l=1, m=1, n=1, o=1, p=1, q=1, r=1, s=1, t=1, u=1, v=1, w=1, x=1, y=1, z=2, z_1=3, z_2=5}>} : (tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x2x3x5xf32>) -> tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x30xf32>
  return %0 : tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x30xf32>
}
