// RUN: sdy-opt %s -sdy-pad-for-divisibility="least-communication=true" | filecheck %s
// RUN: sdy-opt %s -sdy-pad-for-divisibility | filecheck %s --check-prefix=WHOLE

sdy.mesh @mesh = <["x"=4, "y"=2]>

// 12 rows are 4 shards of 3; before they are split into 8 shards, devices exchange rows such that 4 shards have 4 rows.
// CHECK-LABEL: func.func @further
// WHOLE-LABEL: func.func @further
func.func @further(%arg0: tensor<12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<12xf32> {
  // CHECK:       %[[PARTS:.*]] = sdy.manual_computation(%arg0, %{{.*}}) {{.*}} (%[[OWN:.*]]: tensor<3xf32>, %{{.*}}: tensor<f32>)
  // CHECK-NEXT:  %[[RIGHT:.*]] = "stablehlo.collective_permute"(%[[OWN]]) {{.*}} dense<{{\[\[}}2, 0], [3, 1], [4, 2], [5, 3], [6, 4], [7, 5]]>
  // CHECK-NEXT:  %[[ROWS:.*]] = stablehlo.concatenate %[[OWN]], %[[RIGHT]], dim = 0
  // CHECK:       stablehlo.dynamic_slice %[[ROWS]], %{{.*}}, sizes = [4]
  // CHECK:       %[[HALVES:.*]] = sdy.all_slice [{"y"}] %[[PARTS]] out_sharding=<@mesh, [{"x", "y"}]> : tensor<16xf32>
  // CHECK:       sdy.all_gather [{"x", "y"}]
  // WHOLE-NEXT:  %[[ALL:.*]] = sdy.all_gather [{"x"}] %arg0
  // WHOLE:       %[[PADDED:.*]] = stablehlo.pad %[[ALL]]
  // WHOLE-NEXT:  sdy.all_slice [{"x"}] %[[PADDED]]
  %0 = sdy.all_slice [{"y"}] %arg0 out_sharding=<@mesh, [{"x", "y"}]> : tensor<12xf32>
  %1 = sdy.all_gather [{"x", "y"}] %0 out_sharding=<@mesh, [{}]> : tensor<12xf32>
  return %1 : tensor<12xf32>
}

// One row, padded to four: a device would receive three rows in a reduce-scatter, but fewer than two in an all-reduce.
// CHECK-LABEL: func.func @one_row
// WHOLE-LABEL: func.func @one_row
func.func @one_row(%arg0: tensor<1x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}) -> tensor<1x8xf32> {
  // CHECK-NEXT:  %[[SUM:.*]] = sdy.all_reduce {"x"} %arg0 out_sharding=<@mesh, [{}, {"y"}]> : tensor<1x8xf32>
  // CHECK:       %[[PADDED:.*]] = stablehlo.pad %[[SUM]]
  // CHECK-NEXT:  sdy.all_slice [{"x"}, {}] %[[PADDED]]
  // WHOLE:       %[[PADDED:.*]] = stablehlo.pad %arg0
  // WHOLE-NEXT:  sdy.reduce_scatter [{"x"}, {}] %[[PADDED]]
  %0 = sdy.reduce_scatter [{"x"}, {}] %arg0 out_sharding=<@mesh, [{"x"}, {"y"}]> : tensor<1x8xf32>
  %1 = sdy.all_gather [{"x"}, {}] %0 out_sharding=<@mesh, [{}, {"y"}]> : tensor<1x8xf32>
  return %1 : tensor<1x8xf32>
}
