// RUN: sdy-opt %s -mlir-print-op-generic --for-jaxlib=0.11 | filecheck %s
// RUN: sdy-opt %s -mlir-print-op-generic --for-jaxlib=0.11 | sdy-opt | filecheck %s --check-prefix=CUSTOM

// Only the custom syntax of collectives omits a sum.

sdy.mesh @mesh = <["x"=2]>

// CHECK: "sdy.all_reduce"(%{{.*}}) <{out_sharding = #sdy.sharding<@mesh, [{}]>, reduction_axes = #sdy<axis_ref_list{"x"}>, reduction_op = 0 : i32}>
// CHECK: "sdy.all_reduce"(%{{.*}}) <{out_sharding = #sdy.sharding<@mesh, [{}]>, reduction_axes = #sdy<axis_ref_list{"x"}>, reduction_op = 0 : i32}>
// CUSTOM: sdy.all_reduce {"x"} %arg0
// CUSTOM: sdy.all_reduce {"x"} %arg0
func.func @sum(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced={"x"}>}) {
  %0 = sdy.all_reduce {"x"} %arg0 out_sharding=<@mesh, [{}]> : tensor<8xf32>
  %1 = "sdy.all_reduce"(%arg0) <{out_sharding = #sdy.sharding<@mesh, [{}]>, reduction_axes = #sdy<axis_ref_list{"x"}>}> : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// CHECK: "sdy.all_reduce"(%{{.*}}) <{out_sharding = #sdy.sharding<@mesh, [{}]>, reduction_axes = #sdy<axis_ref_list{"x"}>, reduction_op = 1 : i32}>
// CUSTOM: sdy.all_reduce max {"x"} %arg0
func.func @max(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced=max{"x"}>}) {
  %0 = sdy.all_reduce max {"x"} %arg0 out_sharding=<@mesh, [{}]> : tensor<8xf32>
  return
}
