// RUN: sdy-opt %s -sdy-plain --split-input-file | filecheck %s
// RUN: sdy-opt %s -sdy-plain --split-input-file | sdy-opt --split-input-file | filecheck %s

// Argument and result attributes of other dialects stay; replica groups become lists of devices.
// CHECK-NOT: sdy
// CHECK-LABEL: func.func @main(%arg0: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> (tensor<4xf32> {jax.result_info = "x"}) {
// CHECK-NEXT:    %0 = "stablehlo.all_reduce"(%arg0)
// CHECK-SAME{LITERAL}: replica_groups = dense<[[0, 2], [1, 3]]>
// CHECK:         %1 = stablehlo.negate %0 : tensor<4xf32>
// CHECK-NEXT:    return %1
module attributes {sdy.partitioned, mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["x"=2, "y"=2]> {stablehlo.mesh = {axes = [{name = "x", size = 2 : i64}, {name = "y", size = 2 : i64}]}}
  func.func @main(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>, tf.aliasing_output = 0 : i32})
      -> (tensor<4xf32> {jax.result_info = "x", sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
    %0 = "stablehlo.all_reduce"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
        replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x">]>,
        use_global_device_ids}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %sum = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %sum : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = stablehlo.negate %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}

// -----

// In an unpartitioned program, a constraint is replaced by its operand.
// CHECK-NOT: sdy
// CHECK-LABEL: func.func @whole(%arg0: tensor<8xf32>) -> tensor<8xf32> {
// CHECK-NEXT:    return %arg0
sdy.mesh @mesh = <["x"=2]>
func.func @whole(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.sharding_constraint %arg0 <@mesh, [{"x"}]> : tensor<8xf32>
  return %0 : tensor<8xf32>
}
