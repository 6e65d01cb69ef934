// RUN: sdy-opt %s -sdy-pad-for-divisibility="least-communication=true" | filecheck %s
// RUN: sdy-opt %s -sdy-pad-for-divisibility | filecheck %s --check-prefix=WHOLE

sdy.mesh @mesh = <["x"=4, "y"=2]>

// 12 rows are 4 shards of 3, on two devices each; to be split into 8 shards of 2, each device receives rows of its own.
// CHECK-LABEL: func.func @further
// WHOLE-LABEL: func.func @further
func.func @further(%arg0: tensor<12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<12xf32> {
  // CHECK:       %[[HALVES:.*]] = sdy.manual_computation(%arg0, %{{.*}}) {{.*}} (%[[OWN:.*]]: tensor<3xf32>, %{{.*}}: tensor<f32>)
  // CHECK:       %[[TWO:.*]] = "stablehlo.collective_permute"(%{{.*}}) {{.*}} dense<{{\[\[}}5, 3], [7, 5]]>{{.*}} -> tensor<2xf32>
  // CHECK:       %[[ONE:.*]] = "stablehlo.collective_permute"(%{{.*}}) {{.*}} dense<{{\[\[}}3, 1], [6, 4]]>{{.*}} -> tensor<1xf32>
  // CHECK-NEXT:  %[[ROWS:.*]] = stablehlo.concatenate %[[TWO]], %[[OWN]], %[[ONE]], dim = 0
  // CHECK:       stablehlo.dynamic_slice %[[ROWS]], %{{.*}}, sizes = [2]
  // CHECK:       sdy.all_gather [{"x", "y"}] %[[HALVES]]
  // WHOLE-NEXT:  %[[ALL:.*]] = sdy.all_gather [{"x"}] %arg0
  // WHOLE:       %[[PADDED:.*]] = stablehlo.pad %[[ALL]]
  // WHOLE-NEXT:  sdy.all_slice [{"x"}] %[[PADDED]]
  %0 = sdy.all_slice [{"y"}] %arg0 out_sharding=<@mesh, [{"x", "y"}]> : tensor<12xf32>
  %1 = sdy.all_gather [{"x", "y"}] %0 out_sharding=<@mesh, [{}]> : tensor<12xf32>
  return %1 : tensor<12xf32>
}

// The reverse, of 9 rows: devices receive rows of their new shards of 3 before the all-gather, and drop its padding.
// CHECK-LABEL: func.func @less_far
// WHOLE-LABEL: func.func @less_far
func.func @less_far(%arg0: tensor<9xf32>) -> tensor<9xf32> {
  // CHECK:       sdy.all_slice [{"x", "y"}]
  // CHECK:       %[[PIECES:.*]] = sdy.manual_computation
  // CHECK:       "stablehlo.collective_permute"{{.*}} dense<{{\[\[}}1, 2], [2, 3], [4, 5]]>{{.*}} -> tensor<1xf32>
  // CHECK:       "stablehlo.collective_permute"{{.*}} dense<{{\[\[}}3, 4]]>{{.*}} -> tensor<2xf32>
  // CHECK:       %[[PADDED:.*]] = sdy.all_gather [{"y"}] %[[PIECES]] out_sharding=<@mesh, [{"x"}]> : tensor<16xf32>
  // CHECK:       sdy.manual_computation(%[[PADDED]], {{.*}} (%[[FOUR:.*]]: tensor<4xf32>
  // CHECK-NEXT:  stablehlo.slice %[[FOUR]] [0:3]
  // WHOLE:       sdy.all_gather [{"y"}]
  // WHOLE-NEXT:  sdy.all_gather [{"x"}]
  %0 = sdy.all_slice [{"x", "y"}] %arg0 out_sharding=<@mesh, [{"x", "y"}]> : tensor<9xf32>
  %1 = sdy.all_gather [{"y"}] %0 out_sharding=<@mesh, [{"x"}]> : tensor<9xf32>
  %2 = sdy.all_gather [{"x"}] %1 out_sharding=<@mesh, [{}]> : tensor<9xf32>
  return %2 : tensor<9xf32>
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
