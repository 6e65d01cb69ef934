// RUN: sdy-opt %s -sdy-unflatten-call-graph | filecheck %s
// RUN: sdy-opt %s -sdy-unflatten-call-graph='dedup-functions-fully=true' | filecheck %s --check-prefix=FULLY

sdy.mesh @mesh = <["x"=2]>

// FULLY-LABEL: func.func @main
// FULLY: call @f_1(
// FULLY: call @f_1(
// FULLY: call @f_1(
// CHECK-LABEL: func.func @main
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: call @f(
  // CHECK: call @f_0(
  // CHECK: call @f_0(
  %0 = call @f(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = call @f_0(%0) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = call @f_1(%1) : (tensor<8xf32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}

// CHECK-NOT: sdy.original_func_name
func.func private @f(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  return %arg0 : tensor<8xf32>
}

func.func private @f_0(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32>
    attributes {sdy.original_func_name = "f"} {
  return %arg0 : tensor<8xf32>
}

func.func private @f_1(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32>
    attributes {sdy.original_func_name = "f"} {
  return %arg0 : tensor<8xf32>
}
