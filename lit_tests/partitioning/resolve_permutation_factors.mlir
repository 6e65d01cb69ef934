// RUN: sdy-opt %s -sdy-resolve-permutation-factors="least-communication=true" | filecheck %s
// RUN: sdy-opt %s -sdy-resolve-permutation-factors="enable-halo-exchange=false" | filecheck %s --check-prefix=WHOLE

sdy.mesh @mesh = <["x"=4]>

// Each device holds three elements and needs two: the third device receives one from its left neighbour, and the last
// device receives both.
// CHECK-LABEL: func.func @slice
// WHOLE-LABEL: func.func @slice
func.func @slice(%arg0: tensor<12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  // CHECK:       %[[PARTS:.*]] = sdy.manual_computation(%arg0, %{{.*}}) in_shardings=[<@mesh, [{"x"}]>, <@mesh, []>]
  // CHECK-SAME:    out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%[[OWN:.*]]: tensor<3xf32>, %{{.*}}: tensor<f32>)
  // CHECK-NEXT:  %[[LAST:.*]] = stablehlo.slice %[[OWN]] [2:3]
  // CHECK-NEXT:  %[[ONE:.*]] = "stablehlo.collective_permute"(%[[LAST]]) {{.*}} dense<{{\[\[}}1, 2]]>
  // CHECK-NEXT:  %[[END:.*]] = stablehlo.slice %[[OWN]] [1:3]
  // CHECK-NEXT:  %[[BOTH:.*]] = "stablehlo.collective_permute"(%[[END]]) {{.*}} dense<{{\[\[}}2, 3]]>
  // CHECK-NEXT:  %[[BUFFER:.*]] = stablehlo.concatenate %[[ONE]], %[[OWN]], %[[BOTH]], dim = 0
  // CHECK:       stablehlo.partition_id
  // CHECK:       stablehlo.dynamic_slice %[[BUFFER]], %{{.*}}, sizes = [2]
  // CHECK:       return %[[PARTS]] : tensor<8xf32>
  // WHOLE-NEXT:  %[[WHOLE:.*]] = sdy.reshard %arg0 <@mesh, [{}]> : tensor<12xf32>
  // WHOLE-NEXT:  %[[SLICE:.*]] = stablehlo.slice %[[WHOLE]] [1:9] {{.*}}<@mesh, [{}]>
  // WHOLE-NEXT:  sdy.reshard %[[SLICE]] <@mesh, [{"x"}]> : tensor<8xf32>
  %0 = stablehlo.slice %arg0 [1:9] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<12xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// The first device has no left neighbour and uses the padding value instead, which may be nonzero.
// CHECK-LABEL: func.func @pad
func.func @pad(%arg0: tensor<12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %arg1: tensor<f32>) -> tensor<12xf32> {
  // CHECK:       sdy.manual_computation(%arg0, %arg1)
  // CHECK-SAME:    (%[[OWN:.*]]: tensor<3xf32>, %[[PADDING:.*]]: tensor<f32>)
  // CHECK-NEXT:  %[[END:.*]] = stablehlo.slice %[[OWN]] [2:3]
  // CHECK-NEXT:  %[[LEFT:.*]] = "stablehlo.collective_permute"(%[[END]]) {{.*}} dense<{{\[\[}}0, 1], [1, 2], [2, 3]]>
  // CHECK-NEXT:  %[[REST:.*]] = stablehlo.slice %[[OWN]] [0:2]
  // CHECK-NEXT:  %[[PART:.*]] = stablehlo.concatenate %[[LEFT]], %[[REST]], dim = 0
  // CHECK:       %[[INSIDE:.*]] = stablehlo.and
  // CHECK:       stablehlo.select %{{.*}}, %[[PART]], %{{.*}}
  %0 = stablehlo.pad %arg0, %arg1, low = [1], high = [-1], interior = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<12xf32>, tensor<f32>) -> tensor<12xf32>
  return %0 : tensor<12xf32>
}

// The gradient of a kernel: the window has the size and the sharding of the images, and the results are partial sums.
// CHECK-LABEL: func.func @kernel_gradient
func.func @kernel_gradient(%arg0: tensor<12x1x1xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}, {}]>}, %arg1: tensor<12x1x1xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}, {}]>}) -> tensor<3x1x1xf32> {
  // CHECK:       %[[PARTIAL:.*]] = sdy.manual_computation(%arg0, %arg1, 
  // CHECK-SAME:    (%[[OWN:[^:]+]]: tensor<3x1x1xf32>, %[[ABOVE:[^:]+]]: tensor<3x1x1xf32>, %{{[^:]+}}: tensor<f32>)
  // CHECK-NEXT:  %[[END:.*]] = stablehlo.slice %[[OWN]] [2:3, 0:1, 0:1]
  // CHECK-NEXT:  %[[LEFT:.*]] = "stablehlo.collective_permute"(%[[END]])
  // CHECK-NEXT:  %[[START:.*]] = stablehlo.slice %[[OWN]] [0:1, 0:1, 0:1]
  // CHECK-NEXT:  %[[RIGHT:.*]] = "stablehlo.collective_permute"(%[[START]])
  // CHECK-NEXT:  %[[ROWS:.*]] = stablehlo.concatenate %[[LEFT]], %[[OWN]], %[[RIGHT]], dim = 0
  // CHECK-NEXT:  stablehlo.convolution(%[[ROWS]], %[[ABOVE]])
  // CHECK:       sdy.all_reduce {"x"} %[[PARTIAL]]
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [0, f, b]x[0, i, o]->[0, b, f], window = {pad = [[1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<12x1x1xf32>, tensor<12x1x1xf32>) -> tensor<3x1x1xf32>
  %1 = sdy.all_reduce {"x"} %0 out_sharding=<@mesh, [{}, {}, {}]> : tensor<3x1x1xf32>
  return %1 : tensor<3x1x1xf32>
}

// CHECK-LABEL: func.func @reverse
func.func @reverse(%arg0: tensor<12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<12xf32> {
  // CHECK-NEXT:  %[[PARTS:.*]] = stablehlo.reverse %arg0, dims = [0] {{.*}}device_ids=[3, 2, 1, 0]
  // CHECK-NEXT:  %[[MOVED:.*]] = sdy.reshard %[[PARTS]] <@mesh, [{"x"}]> : tensor<12xf32>
  // CHECK-NEXT:  return %[[MOVED]]
  %0 = stablehlo.reverse %arg0, dims = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<12xf32>
  return %0 : tensor<12xf32>
}

// Each half of the rows is sent to one side only.
// CHECK-LABEL: func.func @rows_are_sliced_first
func.func @rows_are_sliced_first(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  // CHECK-NEXT: %[[UPPER:.*]] = stablehlo.slice %arg0 [0:4, 0:16]
  // CHECK:      sdy.manual_computation(%[[UPPER]],
  // CHECK:      %[[LOWER:.*]] = stablehlo.slice %arg0 [4:8, 0:16]
  // CHECK:      sdy.manual_computation(%[[LOWER]],
  %0 = stablehlo.slice %arg0 [0:4, 0:8] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : (tensor<8x16xf32>) -> tensor<4x8xf32>
  %1 = stablehlo.slice %arg0 [4:8, 8:16] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : (tensor<8x16xf32>) -> tensor<4x8xf32>
  return %0, %1 : tensor<4x8xf32>, tensor<4x8xf32>
}

// Both slices need the same columns, of all rows, which `sdy-merge-equal-collectives` sends once.
// CHECK-LABEL: func.func @an_exchange_is_shared
func.func @an_exchange_is_shared(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> (tensor<6x15xf32>, tensor<6x15xf32>) {
  // CHECK:      sdy.manual_computation(%arg0,
  // CHECK:      sdy.manual_computation(%arg0,
  %0 = stablehlo.slice %arg0 [0:6, 1:16] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : (tensor<8x16xf32>) -> tensor<6x15xf32>
  %1 = stablehlo.slice %arg0 [2:8, 1:16] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : (tensor<8x16xf32>) -> tensor<6x15xf32>
  return %0, %1 : tensor<6x15xf32>, tensor<6x15xf32>
}
