// RUN: sdy-opt %s -split-input-file -verify-diagnostics -sdy-convert-global-to-local='preserve-semantics=true'

sdy.mesh @mesh = <["x"=2]>

func.func @window(%arg0: tensor<1x8x2xf32>,
    %arg1: tensor<2x2x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}, {}]>}) -> tensor<1x4x4xf32> {
  // expected-error @+2 {{'stablehlo.convolution' op cannot be partitioned: its shardings are incompatible}}
  // expected-error @+1 {{failed to legalize operation 'stablehlo.convolution' that was explicitly marked illegal}}
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [2]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x2xf32>, tensor<2x2x4xf32>) -> tensor<1x4x4xf32>
  %1 = sdy.all_reduce {"x"} %0 out_sharding=<@mesh, [{}, {}, {}]> : tensor<1x4x4xf32>
  return %1 : tensor<1x4x4xf32>
}

// -----

sdy.mesh @mesh = <["x"=2]>

func.func @part_of_a_dimension(%arg0: tensor<3x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}, %arg1: tensor<4x1xi64>,
    %arg2: tensor<4x1xf32>) -> (tensor<3x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) {
  // expected-error @+2 {{'stablehlo.scatter' op cannot be partitioned: its shardings are incompatible}}
  // expected-error @+1 {{failed to legalize operation 'stablehlo.scatter' that was explicitly marked illegal}}
  %0 = "stablehlo.scatter"(%arg0, %arg1, %arg2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
    %1 = stablehlo.add %arg3, %arg4 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>}
    : (tensor<3x2xf32>, tensor<4x1xi64>, tensor<4x1xf32>) -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}
