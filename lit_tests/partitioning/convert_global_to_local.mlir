// RUN: sdy-opt %s -split-input-file -sdy-convert-global-to-local | filecheck %s

sdy.mesh @mesh = <["x"=2, "y"=4]>

// A function keeps its shardings and gets local types.
// CHECK-LABEL: func.func @dot
// CHECK-SAME:    (%arg0: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}, %arg1: tensor<4x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>})
// CHECK-SAME:    -> (tensor<4x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
func.func @dot(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
               %arg1: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>})
    -> (tensor<8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  // CHECK:       %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
  // CHECK-SAME:    : (tensor<4x4xf32>, tensor<4x32xf32>) -> tensor<4x32xf32>
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
    {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}
    : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  // CHECK:       "stablehlo.all_reduce"(%0)
  // CHECK-SAME:    channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>
  // CHECK-SAME:    replica_groups = dense<{{\[\[}}0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>
  // CHECK-SAME:    use_global_device_ids
  // CHECK:         stablehlo.add
  // CHECK:       : (tensor<4x32xf32>) -> tensor<4x32xf32>
  %1 = sdy.all_reduce {"y"} %0 out_sharding=<@mesh, [{"x"}, {}]> : tensor<8x32xf32>
  return %1 : tensor<8x32xf32>
}

// An all-gather of two dimensions: one all-gather along a new leading dimension, whose shards are then transposed.
// CHECK-LABEL: func.func @all_gather
func.func @all_gather(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<8x16xf32> {
  // CHECK:       %0 = stablehlo.reshape %arg0 : (tensor<4x4xf32>) -> tensor<1x4x4xf32>
  // CHECK:       %1 = "stablehlo.all_gather"(%0)
  // CHECK-SAME:    replica_groups = dense<{{\[\[}}0, 1, 2, 3, 4, 5, 6, 7]]>
  // CHECK-SAME:    -> tensor<8x4x4xf32>
  // CHECK:       %2 = stablehlo.reshape %1 : (tensor<8x4x4xf32>) -> tensor<2x4x4x4xf32>
  // CHECK:       %3 = stablehlo.transpose %2, dims = [0, 2, 1, 3]
  // CHECK:       stablehlo.reshape %3 : (tensor<2x4x4x4xf32>) -> tensor<8x16xf32>
  %0 = sdy.all_gather [{"x"}, {"y"}] %arg0 out_sharding=<@mesh, [{}, {}]> : tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}

// The offset of a device's shard is looked up by the partition id.
// CHECK-LABEL: func.func @all_slice
func.func @all_slice(%arg0: tensor<8x16xf32>) -> (tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}) {
  // CHECK-DAG:   stablehlo.constant dense<[0, 4, 8, 12, 0, 4, 8, 12]> : tensor<8xi64>
  // CHECK-DAG:   stablehlo.partition_id : tensor<ui32>
  // CHECK:       stablehlo.dynamic_slice %arg0
  // CHECK-SAME:    sizes = [8, 4] : (tensor<8x16xf32>, tensor<i64>, tensor<i64>) -> tensor<8x4xf32>
  %0 = sdy.all_slice [{}, {"y"}] %arg0 out_sharding=<@mesh, [{}, {"y"}]> : tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}

// CHECK-LABEL: func.func @all_to_all
func.func @all_to_all(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>})
    -> (tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}) {
  // CHECK:       "stablehlo.all_to_all"(%arg0)
  // CHECK-SAME:    concat_dimension = 0 : i64
  // CHECK-SAME:    split_count = 4 : i64, split_dimension = 1 : i64
  // CHECK-SAME:    (tensor<2x16xf32>) -> tensor<8x4xf32>
  %0 = sdy.all_to_all [{"y"}: 0->1] %arg0 out_sharding=<@mesh, [{}, {"y"}]> : tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}

// CHECK-LABEL: func.func @collective_permute
func.func @collective_permute(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
    -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y":(2)2}]>}) {
  // CHECK:       "stablehlo.collective_permute"(%arg0)
  // CHECK-SAME:    source_target_pairs = dense<{{\[\[}}0, 0], [1, 2], [2, 4], [3, 6], [4, 1], [5, 3], [6, 5], [7, 7]]>
  %0 = sdy.collective_permute %arg0 out_sharding=<@mesh, [{"y":(2)2}]> : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// A call has the local types of its callee.
// CHECK-LABEL: func.func @caller
func.func @caller(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
    -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // CHECK:       call @callee(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
  %0 = call @callee(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK:       func.func private @callee(%arg0: tensor<4xf32>
func.func private @callee(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
    -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  return %arg0 : tensor<8xf32>
}

// CHECK-LABEL: func.func @constants
func.func @constants() -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>},
                           tensor<2x2xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                           tensor<8xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // CHECK:       stablehlo.constant dense<1.000000e+00> : tensor<4xf32>
  %0 = sdy.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} dense<1.000000e+00> : tensor<8xf32>
  // CHECK:       sizes = [1, 2] : (tensor<2x2xi32>, tensor<i64>, tensor<i64>) -> tensor<1x2xi32>
  %1 = sdy.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>
  // CHECK:       stablehlo.iota dim = 0 : tensor<4xi32>
  // CHECK:       stablehlo.constant dense<[0, 0, 0, 0, 4, 4, 4, 4]> : tensor<8xi64>
  // CHECK:       stablehlo.add
  %2 = stablehlo.iota dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xi32>
  return %0, %1, %2 : tensor<8xf32>, tensor<2x2xi32>, tensor<8xi32>
}

// The initial value of a reduction counts once: on the first device along the reduction axes.
// CHECK-LABEL: func.func @reduce_from_a_value
func.func @reduce_from_a_value(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %arg1: tensor<f32>)
    -> tensor<f32> {
  // CHECK:       stablehlo.constant dense<[true, true, true, true, false, false, false, false]> : tensor<8xi1>
  // CHECK:       %[[INIT:.*]] = stablehlo.select
  // CHECK:       stablehlo.reduce(%arg0 init: %[[INIT]]) applies stablehlo.add
  %0 = stablehlo.reduce(%arg0 init: %arg1) applies stablehlo.add across dimensions = [0]
    : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  %1 = sdy.all_reduce {"x"} %0 out_sharding=<@mesh, []> : tensor<f32>
  return %1 : tensor<f32>
}

// -----

sdy.mesh @mesh = <["x"=2]>

// A device gathers the rows of its shard and contributes zeros for the others.
// CHECK-LABEL: func.func @gather
func.func @gather(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg1: tensor<3x1xi32>)
    -> tensor<3x4xf32> {
  // CHECK:       %[[INDICES:.*]] = stablehlo.clamp
  // CHECK:       stablehlo.constant dense<[0, 4]> : tensor<2xi64>
  // CHECK:       %[[LOCAL:.*]] = stablehlo.subtract %[[INDICES]], {{.*}} : tensor<3x1xi32>
  // CHECK:       "stablehlo.gather"(%arg0, %[[LOCAL]])
  // CHECK-SAME:    slice_sizes = array<i64: 1, 4>
  // CHECK:       stablehlo.select
  %0 = "stablehlo.gather"(%arg0, %arg1) <{
      dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0],
                                            index_vector_dim = 1>,
      slice_sizes = array<i64: 1, 4>}> : (tensor<8x4xf32>, tensor<3x1xi32>) -> tensor<3x4xf32>
  %1 = sdy.all_reduce {"x"} %0 out_sharding=<@mesh, [{}, {}]> : tensor<3x4xf32>
  return %1 : tensor<3x4xf32>
}

// A slice at both ends: the shards of the result begin at different offsets of the operand's shards.
// CHECK-LABEL: func.func @slice
func.func @slice(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
    -> (tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // CHECK:       stablehlo.constant dense<[1, 0]> : tensor<2xi64>
  // CHECK:       stablehlo.dynamic_slice %arg0, {{.*}}, sizes = [3] : (tensor<4xf32>, tensor<i64>) -> tensor<3xf32>
  %0 = stablehlo.slice %arg0 [1:7] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// CHECK-LABEL: func.func @pad
func.func @pad(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %arg1: tensor<f32>)
    -> (tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // CHECK:       stablehlo.pad %arg0, %arg1, low = [0], high = [1], interior = [1] : (tensor<4xf32>, tensor<f32>) -> tensor<8xf32>
  %0 = stablehlo.pad %arg0, %arg1, low = [0], high = [1], interior = [1]
    {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>, tensor<f32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2]>

// "x" splits the updates: each device has partial sums, and the input counts once. "y" splits the indexed columns.
// CHECK-LABEL: func.func @scatter
func.func @scatter(%arg0: tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>},
    %arg1: tensor<6x2xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
    %arg2: tensor<6x1xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}) {
  // CHECK:       %[[LEADS:.*]] = stablehlo.constant dense<[true, true, false, false]> : tensor<4xi1>
  // CHECK:       %[[INPUT:.*]] = stablehlo.select %{{.*}}, %arg0
  // CHECK:       stablehlo.constant dense<[0, 1, 0, 1]> : tensor<4xi64>
  // CHECK:       %[[PLACES:.*]] = stablehlo.subtract %arg1
  // CHECK:       "stablehlo.scatter"(%[[INPUT]], %[[PLACES]], %arg2)
  // CHECK:       (tensor<4x1xf32>, tensor<3x2xi32>, tensor<3x1xf32>) -> tensor<4x1xf32>
  %0 = "stablehlo.scatter"(%arg0, %arg1, %arg2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>}> ({
  ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
    %2 = stablehlo.add %arg3, %arg4 : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"y"}]>]>}
    : (tensor<4x2xf32>, tensor<6x2xi32>, tensor<6x1xf32>) -> tensor<4x2xf32>
  %1 = sdy.all_reduce {"x"} %0 out_sharding=<@mesh, [{}, {"y"}]> : tensor<4x2xf32>
  return %1 : tensor<4x2xf32>
}

// -----

sdy.mesh @mesh = <["x"=2]>

// All devices begin with values that change nothing: zeros of a sum, and true of a conjunction.
// CHECK-LABEL: func.func @neutral
func.func @neutral(%arg0: tensor<6x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
    %arg1: tensor<6x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
    %arg2: tensor<6x2xi1> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<4x2xf32>, tensor<2xi1>) {
  // CHECK-NOT:   stablehlo.select
  // CHECK:       %[[ZEROS:.*]] = stablehlo.broadcast_in_dim
  // CHECK-NEXT:  "stablehlo.scatter"(%[[ZEROS]], %arg0, %arg1)
  // CHECK-NOT:   stablehlo.select
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.broadcast_in_dim %zero, dims = []
    {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : (tensor<f32>) -> tensor<4x2xf32>
  %0 = "stablehlo.scatter"(%zeros, %arg0, %arg1) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
    %2 = stablehlo.add %arg3, %arg4 : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>}
    : (tensor<4x2xf32>, tensor<6x1xi32>, tensor<6x2xf32>) -> tensor<4x2xf32>
  %1 = sdy.all_reduce {"x"} %0 out_sharding=<@mesh, [{}, {}]> : tensor<4x2xf32>
  // CHECK:       stablehlo.reduce(%arg2 init: %{{.*}}) applies stablehlo.and across dimensions = [0]
  // CHECK-NOT:   stablehlo.select
  %true = stablehlo.constant dense<true> : tensor<i1>
  %3 = stablehlo.reduce(%arg2 init: %true) applies stablehlo.and across dimensions = [0]
    {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<6x2xi1>, tensor<i1>) -> tensor<2xi1>
  %4 = sdy.all_reduce min {"x"} %3 out_sharding=<@mesh, [{}]> : tensor<2xi1>
  return %1, %4 : tensor<4x2xf32>, tensor<2xi1>
}

// -----

sdy.mesh @mesh = <["x"=2]>

// Adjacent windows that do not overlap do not cross a shard boundary.
// CHECK-LABEL: func.func @maxima
func.func @maxima(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %arg1: tensor<f32>)
    -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // CHECK:       "stablehlo.reduce_window"(%arg0, %arg1)
  // CHECK:       (tensor<4xf32>, tensor<f32>) -> tensor<2xf32>
  %0 = "stablehlo.reduce_window"(%arg0, %arg1) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ({
  ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
    %1 = stablehlo.maximum %arg2, %arg3 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// A named computation keeps its name.
// CHECK-LABEL: func.func @named
func.func @named(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
    -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // CHECK:       sdy.named_computation<"f">(%arg0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] (%arg1: tensor<4xf32>)
  %0 = sdy.named_computation<"f">(%arg0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] (%arg1: tensor<8xf32>) {
    // CHECK:       stablehlo.negate %arg1
    // CHECK-SAME:    tensor<4xf32>
    %1 = stablehlo.negate %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
    sdy.return %1 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
