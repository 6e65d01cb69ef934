// RUN: sdy-opt %s -split-input-file -sdy-pad-for-divisibility | filecheck %s

sdy.mesh @mesh = <["x"=4, "y"=2]>

// Divisible dimensions are unchanged.
// CHECK-LABEL: func.func @divisible
func.func @divisible(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
    -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // CHECK-NEXT:  %0 = stablehlo.negate %arg0 {{.*}} : tensor<8xf32>
  // CHECK-NEXT:  return %0
  %0 = stablehlo.negate %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// A tensor is padded before it is sliced, and the padding is removed after the gather; in between, it has any value.
// CHECK-LABEL: func.func @elementwise
func.func @elementwise(%arg0: tensor<7xf32>) -> tensor<7xf32> {
  // CHECK-NEXT:  %[[ZERO:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  // CHECK-NEXT:  %[[PAD:.*]] = stablehlo.pad %arg0, %[[ZERO]], low = [0], high = [1], interior = [0]
  // CHECK-NEXT:  %[[PART:.*]] = sdy.all_slice [{"x"}] %[[PAD]] out_sharding=<@mesh, [{"x"}]> : tensor<8xf32>
  // CHECK-NEXT:  %[[EXP:.*]] = stablehlo.exponential %[[PART]] {{.*}} : tensor<8xf32>
  // CHECK-NEXT:  %[[WHOLE:.*]] = sdy.all_gather [{"x"}] %[[EXP]] out_sharding=<@mesh, [{}]> : tensor<8xf32>
  // CHECK-NEXT:  %[[CUT:.*]] = stablehlo.slice %[[WHOLE]] [0:7]
  // CHECK-NEXT:  return %[[CUT]] : tensor<7xf32>
  %0 = sdy.all_slice [{"x"}] %arg0 out_sharding=<@mesh, [{"x"}]> : tensor<7xf32>
  %1 = stablehlo.exponential %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<7xf32>
  %2 = sdy.all_gather [{"x"}] %1 out_sharding=<@mesh, [{}]> : tensor<7xf32>
  return %2 : tensor<7xf32>
}

// A reduction reads the padding, so that it is filled with the identity of the reduction.
// CHECK-LABEL: func.func @reduction
func.func @reduction(%arg0: tensor<7xi32>) -> tensor<i32> {
  // CHECK:       %[[ABS:.*]] = stablehlo.abs
  // CHECK-NEXT:  %[[LEAST:.*]] = stablehlo.constant dense<-2147483648> : tensor<i32>
  // CHECK-NEXT:  %[[INDEX:.*]] = stablehlo.iota dim = 0 {{.*}} : tensor<8xi32>
  // CHECK-NEXT:  %[[SIZE:.*]] = stablehlo.constant dense<7> : tensor<i32>
  // CHECK-NEXT:  %[[END:.*]] = stablehlo.broadcast_in_dim %[[SIZE]], dims = []
  // CHECK-NEXT:  %[[INSIDE:.*]] = stablehlo.compare LT, %[[INDEX]], %[[END]]
  // CHECK-NEXT:  %[[FILLER:.*]] = stablehlo.broadcast_in_dim %[[LEAST]], dims = []
  // CHECK-NEXT:  %[[FILLED:.*]] = stablehlo.select %[[INSIDE]], %[[ABS]], %[[FILLER]]
  // CHECK-NEXT:  stablehlo.reduce(%[[FILLED]] init: %{{.*}}) applies stablehlo.maximum
  %init = stablehlo.constant dense<0> : tensor<i32>
  %0 = sdy.all_slice [{"x"}] %arg0 out_sharding=<@mesh, [{"x"}]> : tensor<7xi32>
  %1 = stablehlo.abs %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<7xi32>
  %2 = stablehlo.reduce(%1 init: %init) applies stablehlo.maximum across dimensions = [0]
    : (tensor<7xi32>, tensor<i32>) -> tensor<i32>
  %3 = sdy.all_reduce max {"x"} %2 out_sharding=<@mesh, []> : tensor<i32>
  return %3 : tensor<i32>
}

// A matrix product needs zeros, which new padding has already.
// CHECK-LABEL: func.func @product
func.func @product(%arg0: tensor<7x3xf32>, %arg1: tensor<7x5xf32>) -> tensor<3x5xf32> {
  // CHECK:       %[[LHS:.*]] = sdy.all_slice {{.*}} : tensor<8x3xf32>
  // CHECK:       %[[EXP:.*]] = stablehlo.exponential
  // CHECK:       %[[RHS:.*]] = stablehlo.select {{.*}}, %[[EXP]], {{.*}} : tensor<8x5xi1>, tensor<8x5xf32>
  // CHECK-NEXT:  stablehlo.dot_general %[[LHS]], %[[RHS]]
  %0 = sdy.all_slice [{"x"}, {}] %arg0 out_sharding=<@mesh, [{"x"}, {}]> : tensor<7x3xf32>
  %1 = sdy.all_slice [{"x"}, {}] %arg1 out_sharding=<@mesh, [{"x"}, {}]> : tensor<7x5xf32>
  %2 = stablehlo.exponential %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<7x5xf32>
  %3 = stablehlo.dot_general %0, %2, contracting_dims = [0] x [0]
    {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : (tensor<7x3xf32>, tensor<7x5xf32>) -> tensor<3x5xf32>
  %4 = sdy.all_reduce {"x"} %3 out_sharding=<@mesh, [{}, {}]> : tensor<3x5xf32>
  return %4 : tensor<3x5xf32>
}

// The rows that a slice cuts off at the end become padding if the shards keep their size.
// CHECK-LABEL: func.func @slice
func.func @slice(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<7xf32> {
  // CHECK-NEXT:  stablehlo.slice %arg0 [0:8]
  // CHECK-NEXT:  sdy.all_gather
  // CHECK-NEXT:  stablehlo.slice %{{.*}} [0:7]
  %0 = stablehlo.slice %arg0 [0:7] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
    : (tensor<8xf32>) -> tensor<7xf32>
  %1 = sdy.all_gather [{"x"}] %0 out_sharding=<@mesh, [{}]> : tensor<7xf32>
  return %1 : tensor<7xf32>
}

// The stride of a single row has no effect: it becomes the size of a shard, and the rows that follow become padding.
// CHECK-LABEL: func.func @slice_of_one_row
func.func @slice_of_one_row(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<1xf32> {
  // CHECK-NEXT:  %[[ROWS:.*]] = stablehlo.slice %arg0 [0:7:2]
  // CHECK-NEXT:  sdy.all_gather [{"x"}] %[[ROWS]]
  %0 = stablehlo.slice %arg0 [0:1:5] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
    : (tensor<8xf32>) -> tensor<1xf32>
  %1 = sdy.all_gather [{"x"}] %0 out_sharding=<@mesh, [{}]> : tensor<1xf32>
  return %1 : tensor<1xf32>
}

// Rows that are appended at the end are written into the padding if they fit.
// CHECK-LABEL: func.func @pad
func.func @pad(%arg0: tensor<6xf32>, %arg1: tensor<f32>) -> tensor<7xf32> {
  // CHECK:       %[[PART:.*]] = sdy.all_slice
  // CHECK:       %[[VALUE:.*]] = stablehlo.broadcast_in_dim %arg1
  // CHECK-NEXT:  %[[FILLED:.*]] = stablehlo.select {{.*}}, %[[PART]], %[[VALUE]]
  // CHECK-NEXT:  stablehlo.pad %[[FILLED]], %arg1, low = [0], high = [0], interior = [0]
  %0 = sdy.all_slice [{"x"}] %arg0 out_sharding=<@mesh, [{"x"}]> : tensor<6xf32>
  %1 = stablehlo.pad %0, %arg1, low = [0], high = [1], interior = [0]
    {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<6xf32>, tensor<f32>) -> tensor<7xf32>
  %2 = sdy.all_gather [{"x"}] %1 out_sharding=<@mesh, [{}]> : tensor<7xf32>
  return %2 : tensor<7xf32>
}

// Indices are clamped to the unpadded rows.
// CHECK-LABEL: func.func @gather
func.func @gather(%arg0: tensor<7xf32>, %arg1: tensor<3x1xi32>) -> tensor<3xf32> {
  // CHECK:       %[[PART:.*]] = sdy.all_slice
  // CHECK:       %[[LAST:.*]] = stablehlo.constant dense<6> : tensor<1xi32>
  // CHECK:       %[[INDICES:.*]] = stablehlo.clamp %{{.*}}, %arg1, %{{.*}} : tensor<3x1xi32>
  // CHECK:       "stablehlo.gather"(%[[PART]], %[[INDICES]])
  %0 = sdy.all_slice [{"x"}] %arg0 out_sharding=<@mesh, [{"x"}]> : tensor<7xf32>
  %1 = "stablehlo.gather"(%0, %arg1) <{
      dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
      slice_sizes = array<i64: 1>}> : (tensor<7xf32>, tensor<3x1xi32>) -> tensor<3xf32>
  %2 = sdy.all_reduce {"x"} %1 out_sharding=<@mesh, [{}]> : tensor<3xf32>
  return %2 : tensor<3xf32>
}

// A collective has a padded size that its shardings before and after divide.
// CHECK-LABEL: func.func @all_to_all
func.func @all_to_all(%arg0: tensor<7x5xf32>) -> tensor<7x5xf32> {
  // CHECK:       %[[PART:.*]] = sdy.all_slice {{.*}} : tensor<8x5xf32>
  // CHECK:       %[[PAD:.*]] = stablehlo.pad %[[PART]], {{.*}}, low = [0, 0], high = [0, 3]
  // CHECK-NEXT:  %[[MOVED:.*]] = sdy.all_to_all [{"x"}: 0->1] %[[PAD]] out_sharding=<@mesh, [{}, {"x"}]> : tensor<8x8xf32>
  // CHECK-NEXT:  %[[CUT:.*]] = stablehlo.slice %[[MOVED]] [0:7, 0:8]
  %0 = sdy.all_slice [{"x"}, {}] %arg0 out_sharding=<@mesh, [{"x"}, {}]> : tensor<7x5xf32>
  %1 = sdy.all_to_all [{"x"}: 0->1] %0 out_sharding=<@mesh, [{}, {"x"}]> : tensor<7x5xf32>
  %2 = sdy.all_gather [{}, {"x"}] %1 out_sharding=<@mesh, [{}, {}]> : tensor<7x5xf32>
  return %2 : tensor<7x5xf32>
}

// -----

sdy.mesh @mesh = <["x"=4, "y"=2]>

// A size that is split into both 4 and 8 shards is padded for 8, so that no elements move in between.
// CHECK-LABEL: func.func @some_of_the_axes
func.func @some_of_the_axes(%arg0: tensor<3xf32>) -> tensor<3xf32> {
  // CHECK:       %[[PART:.*]] = sdy.all_slice [{"x", "y"}] {{.*}} : tensor<8xf32>
  // CHECK-NEXT:  %[[LARGER:.*]] = sdy.all_gather [{"y"}] %[[PART]] out_sharding=<@mesh, [{"x"}]> : tensor<8xf32>
  // CHECK-NEXT:  sdy.all_gather [{"x"}] %[[LARGER]] out_sharding=<@mesh, [{}]> : tensor<8xf32>
  %0 = sdy.all_slice [{"x", "y"}] %arg0 out_sharding=<@mesh, [{"x", "y"}]> : tensor<3xf32>
  %1 = sdy.all_gather [{"y"}] %0 out_sharding=<@mesh, [{"x"}]> : tensor<3xf32>
  %2 = sdy.all_gather [{"x"}] %1 out_sharding=<@mesh, [{}]> : tensor<3xf32>
  return %2 : tensor<3xf32>
}
