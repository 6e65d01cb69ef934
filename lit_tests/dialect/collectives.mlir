// RUN: sdy-opt %s | filecheck %s
// RUN: sdy-opt %s --mlir-print-op-generic | sdy-opt | filecheck %s

sdy.mesh @mesh = <["x"=4, "y"=2, "z"=4]>

// CHECK-LABEL: func.func @all
func.func @all(%arg0: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>}) -> tensor<16x16xf32> {
  // CHECK-NEXT: %0 = sdy.all_gather [{"x":(2)2, "y"}, {}] %arg0 out_sharding=<@mesh, [{"x":(1)2}, {}]> : tensor<16x16xf32>
  %0 = sdy.all_gather [{"x":(2)2, "y"}, {}] %arg0 out_sharding=<@mesh, [{"x":(1)2}, {}]> : tensor<16x16xf32>
  // CHECK-NEXT: %1 = sdy.all_slice [{"x":(2)2}, {"y"}] %0 out_sharding=<@mesh, [{"x"}, {"y"}]> : tensor<16x16xf32>
  %1 = sdy.all_slice [{"x":(2)2}, {"y"}] %0 out_sharding=<@mesh, [{"x"}, {"y"}]> : tensor<16x16xf32>
  // CHECK-NEXT: %2 = sdy.all_to_all [{"x"}: 0->1] %1 out_sharding=<@mesh, [{}, {"y", "x"}]> : tensor<16x16xf32>
  %2 = sdy.all_to_all [{"x"}: 0->1] %1 out_sharding=<@mesh, [{}, {"y", "x"}]> : tensor<16x16xf32>
  // CHECK-NEXT: %3 = sdy.collective_permute %2 out_sharding=<@mesh, [{}, {"z", "y"}]> : tensor<16x16xf32>
  %3 = sdy.collective_permute %2 out_sharding=<@mesh, [{}, {"z", "y"}]> : tensor<16x16xf32>
  // CHECK-NEXT: %4 = sdy.sharded_to_unreduced [{}, {"y"}] %3 out_sharding=<@mesh, [{}, {"z"}], unreduced={"y"}> : tensor<16x16xf32>
  %4 = sdy.sharded_to_unreduced [{}, {"y"}] %3 out_sharding=<@mesh, [{}, {"z"}], unreduced={"y"}> : tensor<16x16xf32>
  // CHECK-NEXT: %5 = sdy.replicated_to_unreduced {"x"} %4 out_sharding=<@mesh, [{}, {"z"}], unreduced={"x", "y"}> : tensor<16x16xf32>
  %5 = sdy.replicated_to_unreduced {"x"} %4 out_sharding=<@mesh, [{}, {"z"}], unreduced={"x", "y"}> : tensor<16x16xf32>
  // CHECK-NEXT: %6 = sdy.reduce_scatter [{"x"}, {}] %5 out_sharding=<@mesh, [{"x"}, {"z"}], unreduced={"y"}> : tensor<16x16xf32>
  %6 = sdy.reduce_scatter [{"x"}, {}] %5 out_sharding=<@mesh, [{"x"}, {"z"}], unreduced={"y"}> : tensor<16x16xf32>
  // CHECK-NEXT: %7 = sdy.all_reduce {"y"} %6 out_sharding=<@mesh, [{"x"}, {"z"}]> : tensor<16x16xf32>
  %7 = sdy.all_reduce {"y"} %6 out_sharding=<@mesh, [{"x"}, {"z"}]> : tensor<16x16xf32>
  return %7 : tensor<16x16xf32>
}

// CHECK-LABEL: func.func @other_reductions
func.func @other_reductions(%arg0: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced=max{"x"}>}, %arg1: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced=min{"x"}>}) -> tensor<16xf32> {
  // CHECK-NEXT: sdy.all_reduce max {"x"} %arg0 out_sharding=<@mesh, [{}]> : tensor<16xf32>
  %0 = sdy.all_reduce max {"x"} %arg0 out_sharding=<@mesh, [{}]> : tensor<16xf32>
  // CHECK-NEXT: sdy.reduce_scatter min [{"x"}] %arg1 out_sharding=<@mesh, [{"x"}]> : tensor<16xf32>
  %1 = sdy.reduce_scatter min [{"x"}] %arg1 out_sharding=<@mesh, [{"x"}]> : tensor<16xf32>
  return %0 : tensor<16xf32>
}
