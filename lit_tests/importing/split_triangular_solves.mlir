// RUN: sdy-opt %s -sdy-split-triangular-solves | filecheck %s

// The columns of the right-hand side are independent.
// CHECK-LABEL: func.func @left
func.func @left(%a: tensor<8x8xf32>, %b: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // CHECK: #sdy.op_sharding_rule<([j, k], [l, i])->([m, i]) {i=4, j=8, k=8, l=8, m=8} need_replication={j, k, l, m}, custom>
  %0 = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, unit_diagonal = false,
      transpose_a = #stablehlo<transpose NO_TRANSPOSE>}> : (tensor<8x8xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// If the matrix is on the right, the rows are; batch dimensions always are.
// CHECK-LABEL: func.func @right
func.func @right(%a: tensor<2x8x8xf32>, %b: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
  // CHECK: #sdy.op_sharding_rule<([i, k, l], [i, j, m])->([i, j, n]) {i=2, j=4, k=8, l=8, m=8, n=8} need_replication={k, l, m, n}, custom>
  %0 = "stablehlo.triangular_solve"(%a, %b) <{left_side = false, lower = true, unit_diagonal = false,
      transpose_a = #stablehlo<transpose TRANSPOSE>}> : (tensor<2x8x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %0 : tensor<2x4x8xf32>
}

// JAX attaches its own rule to LAPACK calls on CPUs.
// CHECK-LABEL: func.func @lapack
func.func @lapack(%a: tensor<8x8xf64>, %b: tensor<4x8xf64>) -> tensor<4x8xf64> {
  // CHECK: #sdy.op_sharding_rule<([j, k], [i, l])->([i, m]) {i=4, j=8, k=8, l=8, m=8} need_replication={j, k, l, m}, custom>
  %0 = stablehlo.custom_call @lapack_dtrsm_ffi(%a, %b) {
      mhlo.backend_config = {diag = 78 : ui8, side = 82 : ui8, trans_x = 78 : ui8, uplo = 85 : ui8},
      sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [k, l])->([m, n]) {i=8, j=8, k=4, l=8, m=4, n=8}, custom>
    } : (tensor<8x8xf64>, tensor<4x8xf64>) -> tensor<4x8xf64>
  return %0 : tensor<4x8xf64>
}

// CHECK-LABEL: func.func @with_a_rule
func.func @with_a_rule(%a: tensor<8x8xf32>, %b: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // CHECK: #sdy.op_sharding_rule<([i, j], [k, l])->([m, n]) {i=8, j=8, k=8, l=4, m=8, n=4}, custom>
  %0 = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, unit_diagonal = false,
      transpose_a = #stablehlo<transpose NO_TRANSPOSE>}> {
      sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [k, l])->([m, n]) {i=8, j=8, k=8, l=4, m=8, n=4}, custom>
    } : (tensor<8x8xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
