// RUN: sdy-opt %s -split-input-file -verify-diagnostics | filecheck %s

#rows = #sparse_tensor.encoding<{ map = (row, column) -> (row : dense, column : compressed(nonordered, nonunique)), crdWidth = 32 }>
#blocks = #sparse_tensor.encoding<{ map = (i, j) -> (i floordiv 2 : compressed, j : dense, i mod 2 : structured[2, 4]) }>

// CHECK: #sparse = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed(nonunique, nonordered)), crdWidth = 32 }>
// CHECK: #sparse1 = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 floordiv 2 : compressed, d1 : dense, d0 mod 2 : structured[2, 4]) }>
// CHECK-LABEL: @operands_and_results_may_differ
func.func @operands_and_results_may_differ(%arg0: tensor<8x4xf32, #rows>, %arg1: tensor<8x4xf32, #blocks>) -> tensor<8x4xf32> {
  // CHECK-NEXT: stablehlo.add %arg0, %arg1 : (tensor<8x4xf32, #sparse>, tensor<8x4xf32, #sparse1>) -> tensor<8x4xf32>
  %0 = stablehlo.add %arg0, %arg1 : (tensor<8x4xf32, #rows>, tensor<8x4xf32, #blocks>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

// expected-error @+1 {{dimension-rank mismatch between encoding and tensor shape: 1 != 2}}
func.func private @rank(tensor<8x4xf32, #sparse_tensor.encoding<{ map = (d0) -> (d0 : dense) }>>)

// -----

// expected-error @+1 {{expected a dimension of the tensor}}
func.func private @other_name(tensor<8xf32, #sparse_tensor.encoding<{ map = (row) -> (column : dense) }>>)

// -----

// expected-error @+1 {{expected one of 0, 8, 16, 32, 64}}
func.func private @width(tensor<8xf32, #sparse_tensor.encoding<{ map = (d0) -> (d0 : dense), posWidth = 7 }>>)
