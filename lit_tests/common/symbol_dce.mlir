// RUN: sdy-opt %s -symbol-dce | filecheck %s

// CHECK-NOT: @unused_mesh
sdy.mesh @unused_mesh = <["x"=2]> {sym_visibility = "private"}

// CHECK: sdy.mesh @used_mesh
sdy.mesh @used_mesh = <["x"=4]> {sym_visibility = "private"}

// CHECK-LABEL: func.func @main
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@used_mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = call @used(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK-NOT: @unused
func.func private @unused(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @used_by_unused(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK: func.func private @used
func.func private @used(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  return %arg0 : tensor<8xf32>
}

// CHECK-NOT: @used_by_unused
func.func private @used_by_unused(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @unused(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
