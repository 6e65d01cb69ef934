// RUN: sdy-opt %s -sdy-convert-global-to-local | filecheck %s --check-prefixes=CHECK,DEFAULT,PARTITION,LISTS
// RUN: sdy-opt %s -sdy-convert-global-to-local='per-dim-all-gather=true combine-multi-dimension-reduce-scatter=true enable-rgv3=true replica-count=4 least-communication=true' | filecheck %s --check-prefixes=CHECK,OTHER,REPLICA,AXES

sdy.mesh @mesh = <["x"=2, "y"=2]>

// CHECK-LABEL: func.func @all_gather
func.func @all_gather(%arg0: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<4x4xf32> {
  // DEFAULT:       "stablehlo.all_gather"
  // DEFAULT-SAME:    replica_groups = dense<{{\[\[}}0, 1, 2, 3]]>
  // DEFAULT-SAME:    (tensor<1x2x2xf32>) -> tensor<4x2x2xf32>
  // OTHER:         "stablehlo.all_gather"(%arg0)
  // OTHER-SAME:      all_gather_dim = 1
  // OTHER-SAME:      replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "y">]>
  // OTHER:         "stablehlo.all_gather"
  // OTHER-SAME:      all_gather_dim = 0
  %0 = sdy.all_gather [{"x"}, {"y"}] %arg0 out_sharding=<@mesh, [{}, {}]> : tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// Only the first device's row is used: the others add zero bits, which preserve even the sign of zero.
// CHECK-LABEL: func.func @first_of_gathered
func.func @first_of_gathered(%arg0: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>}) -> tensor<1x4xf32> {
  // DEFAULT:       "stablehlo.all_gather"(%arg0)
  // DEFAULT:       stablehlo.slice {{.*}} [0:1, 0:4] {{.*}} : (tensor<4x4xf32>)
  // OTHER:         %[[OWN:.*]] = stablehlo.select
  // OTHER-NEXT:    %[[BITS:.*]] = stablehlo.bitcast_convert %[[OWN]] : (tensor<1x4xf32>) -> tensor<1x4xi32>
  // OTHER-NEXT:    %[[SUM:.*]] = "stablehlo.all_reduce"(%[[BITS]])
  // OTHER:         %[[FIRST:.*]] = stablehlo.bitcast_convert %[[SUM]]
  // OTHER-NEXT:    stablehlo.slice %[[FIRST]] [0:1, 0:4]
  %0 = sdy.all_gather [{"x", "y"}, {}] %arg0 out_sharding=<@mesh, [{}, {}]> : tensor<4x4xf32>
  %1 = stablehlo.slice %0 [0:1, 0:4] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : (tensor<4x4xf32>) -> tensor<1x4xf32>
  return %1 : tensor<1x4xf32>
}

// CHECK-LABEL: func.func @reduce_scatter
func.func @reduce_scatter(%arg0: tensor<4x4xf32>)
    -> (tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) {
  // DEFAULT:       "stablehlo.all_reduce"(%arg0)
  // PARTITION:     stablehlo.partition_id
  // DEFAULT:       stablehlo.dynamic_slice {{.*}}, sizes = [2, 2]
  // OTHER:         "stablehlo.reduce_scatter"
  // OTHER:         (tensor<4x2x2xf32>) -> tensor<1x2x2xf32>
  %0 = sdy.reduce_scatter [{"x"}, {"y"}] %arg0 out_sharding=<@mesh, [{"x"}, {"y"}]> : tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// CHECK-LABEL: func.func @all_reduce
func.func @all_reduce(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  // LISTS:         replica_groups = dense<{{\[\[}}0, 1], [2, 3]]>
  // AXES:          replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "y">]>
  %0 = sdy.all_reduce {"y"} %arg0 out_sharding=<@mesh, [{}]> : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @all_slice
func.func @all_slice(%arg0: tensor<4xf32>) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // PARTITION:     stablehlo.partition_id
  // REPLICA:       stablehlo.replica_id
  %0 = sdy.all_slice [{"x"}] %arg0 out_sharding=<@mesh, [{"x"}]> : tensor<4xf32>
  return %0 : tensor<4xf32>
}
