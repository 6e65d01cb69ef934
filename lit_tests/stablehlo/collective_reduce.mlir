// RUN: sdy-opt %s | filecheck %s
// RUN: sdy-opt -mlir-print-op-generic %s | sdy-opt | filecheck %s

// CHECK-LABEL: @on_the_first
func.func @on_the_first(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: %0 = "stablehlo.collective_reduce"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
  // CHECK: }) : (tensor<4xf32>) -> tensor<4xf32>
  %0 = "stablehlo.collective_reduce"(%arg0) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %sum = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %sum : tensor<f32>
  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: @where_the_last_operand_says
func.func @where_the_last_operand_says(%arg0: tensor<4xf32>, %root: tensor<1xi32>) -> tensor<4xf32> {
  // CHECK: %0 = "stablehlo.collective_reduce"(%arg0, %arg1) <{has_dynamic_root, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  // CHECK: }) : (tensor<4xf32>, tensor<1xi32>) -> tensor<4xf32>
  %0 = "stablehlo.collective_reduce"(%arg0, %root) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %sum = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %sum : tensor<f32>
  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, has_dynamic_root} : (tensor<4xf32>, tensor<1xi32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
