// RUN: sdy-opt %s -sdy-remove-all-gather-reduce-scatter-for-cmv1 | filecheck %s

sdy.mesh @mesh = <["x"=2, "y"=2]>

// CHECK-LABEL: func.func @gather_before
func.func @gather_before(
    %arg0: tensor<8x16xf32>, %arg1: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x32xf32> {
  // CHECK-NEXT: %0 = stablehlo.dot %arg0, %arg1
  // CHECK-NEXT: return %0
  %0 = sdy.all_gather [{"x"}, {}] %arg1 out_sharding=<@mesh, [{}, {}]> : tensor<16x32xf32>
  %1 = stablehlo.dot %arg0, %0 : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  return %1 : tensor<8x32xf32>
}

// CHECK-LABEL: func.func @gather_that_is_needed
func.func @gather_that_is_needed(
    %arg0: tensor<16x16xf32>, %arg1: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<16x16xf32> {
  // CHECK-NEXT: %0 = sdy.all_gather
  // CHECK-NEXT: %1 = stablehlo.dot %arg0, %0
  // CHECK-NEXT: %2 = stablehlo.add %1, %0
  %0 = sdy.all_gather [{"x"}, {}] %arg1 out_sharding=<@mesh, [{}, {}]> : tensor<16x16xf32>
  %1 = stablehlo.dot %arg0, %0 : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %2 = stablehlo.add %1, %0 : tensor<16x16xf32>
  return %2 : tensor<16x16xf32>
}

// CHECK-LABEL: func.func @scatter_after
func.func @scatter_after(
    %arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
    %arg1: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x32xf32> {
  // CHECK-NEXT: %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}
  // CHECK-NEXT: return %0
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  %1 = sdy.reduce_scatter [{"x"}, {}] %0 out_sharding=<@mesh, [{"x"}, {}]> : tensor<8x32xf32>
  return %1 : tensor<8x32xf32>
}

// A reduce-scatter is kept if an all-gather was removed, or if the dot product has unreduced axes.
// CHECK-LABEL: func.func @scatter_that_stays
func.func @scatter_that_stays(
    %arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>},
    %arg1: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<8x32xf32>, tensor<8x32xf32>) {
  // CHECK-NEXT: %0 = stablehlo.dot %arg0, %arg1
  // CHECK-NEXT: %1 = sdy.reduce_scatter
  // CHECK-NEXT: %2 = stablehlo.dot %arg0, %arg1
  // CHECK-NEXT: %3 = sdy.reduce_scatter
  %0 = sdy.all_gather [{"y"}, {}] %arg0 out_sharding=<@mesh, [{}, {"x"}]> : tensor<8x16xf32>
  %1 = stablehlo.dot %0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  %2 = sdy.reduce_scatter [{"x"}, {}] %1 out_sharding=<@mesh, [{"x"}, {}]> : tensor<8x32xf32>
  %3 = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {}], unreduced={"x"}>]>} : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  %4 = sdy.reduce_scatter [{}, {"x"}] %3 out_sharding=<@mesh, [{"y"}, {"x"}]> : tensor<8x32xf32>
  return %2, %4 : tensor<8x32xf32>, tensor<8x32xf32>
}
