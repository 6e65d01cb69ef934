// RUN: sdy-opt %s -sdy-drop-idle-axes | filecheck %s

sdy.mesh @mesh = <["x"=8, "y"=6]>

// Two rows are split over a sub-axis of size 2, not over 8 devices; the users of the reshard get the same sharding.
// CHECK-LABEL: func.func @rows
func.func @rows(%arg0: tensor<2x64xf32>) -> tensor<2x64xf32> {
  // CHECK-NEXT:  %[[ROWS:.*]] = sdy.reshard %arg0 <@mesh, [{"x":(1)2}, {}]>
  // CHECK-NEXT:  stablehlo.negate %[[ROWS]] {{.*}}<@mesh, [{"x":(1)2}, {}]>
  %0 = sdy.reshard %arg0 <@mesh, [{"x"}, {}]> : tensor<2x64xf32>
  %1 = stablehlo.negate %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<2x64xf32>
  return %1 : tensor<2x64xf32>
}

// CHECK-LABEL: func.func @one_row_and_a_sum
func.func @one_row_and_a_sum(%arg0: tensor<1x8xf32>, %arg1: tensor<8x1xf32>) -> tensor<1x1xf32> {
  // CHECK-NEXT:  %[[ROW:.*]] = sdy.reshard %arg0 <@mesh, [{}, {"x"}]>
  // CHECK-NEXT:  stablehlo.dot %[[ROW]], %arg1 {{.*}}<@mesh, [{}, {}]>
  %0 = sdy.reshard %arg0 <@mesh, [{"y"}, {"x"}]> : tensor<1x8xf32>
  %1 = stablehlo.dot %0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {"x"}]>]>} : (tensor<1x8xf32>, tensor<8x1xf32>) -> tensor<1x1xf32>
  return %1 : tensor<1x1xf32>
}

// Unchanged: 9 rows fill 5 of 8 shards, but 4 shards would be larger; "y" of size 6 has no sub-axis of size 3 in front.
// CHECK-LABEL: func.func @no_idle_axes
func.func @no_idle_axes(%arg0: tensor<9x3xf32>) -> tensor<9x3xf32> {
  // CHECK-NEXT:  sdy.reshard %arg0 <@mesh, [{"x"}, {"y"}]>
  %0 = sdy.reshard %arg0 <@mesh, [{"x"}, {"y"}]> : tensor<9x3xf32>
  return %0 : tensor<9x3xf32>
}

// Unchanged: one device holds the row, and would have to send it to the others.
// CHECK-LABEL: func.func @moved
func.func @moved(%arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<1x8xf32> {
  // CHECK-NEXT:  stablehlo.slice %arg0 {{.*}}<@mesh, [{"x"}, {}]>
  %0 = stablehlo.slice %arg0 [3:4, 0:8] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<16x8xf32>) -> tensor<1x8xf32>
  return %0 : tensor<1x8xf32>
}

// Unchanged: both operands must be split over the same axes, so that devices exchange rows.
// CHECK-LABEL: func.func @joined
func.func @joined(%arg0: tensor<15xf32>, %arg1: tensor<1xf32>) -> tensor<16xf32> {
  // CHECK:       sdy.reshard %arg1 <@mesh, [{"x"}]>
  %0 = sdy.reshard %arg0 <@mesh, [{"x"}]> : tensor<15xf32>
  %1 = sdy.reshard %arg1 <@mesh, [{"x"}]> : tensor<1xf32>
  %2 = stablehlo.concatenate %0, %1, dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<15xf32>, tensor<1xf32>) -> tensor<16xf32>
  return %2 : tensor<16xf32>
}

// A reshape that adds a dimension leaves the rows in place, and both operands of the gather change together.
// CHECK-LABEL: func.func @rows_and_their_indices
func.func @rows_and_their_indices(%arg0: tensor<2x64xf32>, %arg1: tensor<2x8xi32>) -> tensor<2x8xf32> {
  // CHECK-NEXT:  sdy.reshard %arg0 <@mesh, [{"x":(1)2}, {}]>
  // CHECK-NEXT:  sdy.reshard %arg1 <@mesh, [{"x":(1)2}, {}]>
  // CHECK-NEXT:  stablehlo.reshape {{.*}}<@mesh, [{"x":(1)2}, {}, {}]>
  // CHECK-NEXT:  stablehlo.gather{{.*}}<@mesh, [{}, {"x"}]>
  %0 = sdy.reshard %arg0 <@mesh, [{"x"}, {}]> : tensor<2x64xf32>
  %1 = sdy.reshard %arg1 <@mesh, [{"x"}, {}]> : tensor<2x8xi32>
  %2 = stablehlo.reshape %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}, {}]>]>} : (tensor<2x8xi32>) -> tensor<2x8x1xi32>
  %3 = "stablehlo.gather"(%0, %2) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}> {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : (tensor<2x64xf32>, tensor<2x8x1xi32>) -> tensor<2x8xf32>
  return %3 : tensor<2x8xf32>
}

// Unchanged: the indices come from an argument that is split over all of "x", and the rows with them.
// CHECK-LABEL: func.func @rows_and_split_indices
func.func @rows_and_split_indices(%arg0: tensor<2x64xf32>, %arg1: tensor<2x3x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}, {}]>}) -> tensor<2x3xf32> {
  // CHECK-NEXT:  sdy.reshard %arg0 <@mesh, [{"x"}, {}]>
  %0 = sdy.reshard %arg0 <@mesh, [{"x"}, {}]> : tensor<2x64xf32>
  %1 = "stablehlo.gather"(%0, %arg1) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}> {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : (tensor<2x64xf32>, tensor<2x3x1xi32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}

// The body of a loop gets the sharding of its initial value.
// CHECK-LABEL: func.func @loop
func.func @loop(%arg0: tensor<2xf32>, %arg1: tensor<i32>) -> tensor<2xf32> {
  // CHECK:       sdy.reshard %arg0 <@mesh, [{"x":(1)2}]>
  // CHECK:       stablehlo.while{{.*}}<@mesh, [{"x":(1)2}]>, <@mesh, []>
  // CHECK:       stablehlo.add {{.*}}<@mesh, [{"x":(1)2}]>
  %0 = sdy.reshard %arg0 <@mesh, [{"x"}]> : tensor<2xf32>
  %1:2 = stablehlo.while(%iter = %0, %count = %arg1) : tensor<2xf32>, tensor<i32> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>, <@mesh, []>]>}
  cond {
    %c = stablehlo.constant dense<4> : tensor<i32>
    %2 = stablehlo.compare LT, %count, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %2 = stablehlo.add %iter, %iter {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<2xf32>
    %c = stablehlo.constant dense<1> : tensor<i32>
    %3 = stablehlo.add %count, %c : tensor<i32>
    stablehlo.return %2, %3 : tensor<2xf32>, tensor<i32>
  }
  return %1#0 : tensor<2xf32>
}

// A reshard that keeps the rows where they are, and a reshape of a replicated value, take part.
// CHECK-LABEL: func.func @weighted
func.func @weighted(%arg0: tensor<2x64xf32>) -> tensor<2x64xf32> {
  // CHECK:       sdy.reshard %arg0 <@mesh, [{"x":(1)2}, {}]>
  // CHECK-NEXT:  sdy.reshard %{{.*}} <@mesh, [{"x":(1)2}, {}]>
  // CHECK:       stablehlo.reshape {{.*}}<@mesh, [{"x":(1)2}, {}]>
  // CHECK-NEXT:  stablehlo.multiply {{.*}}<@mesh, [{"x":(1)2}, {}]>
  %0 = sdy.reshard %arg0 <@mesh, [{"x"}, {}]> : tensor<2x64xf32>
  %1 = sdy.reshard %0 <@mesh, [{"x"}, {}]> : tensor<2x64xf32>
  %2 = stablehlo.iota dim = 0 : tensor<128xf32>
  %3 = stablehlo.reshape %2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<128xf32>) -> tensor<2x64xf32>
  %4 = stablehlo.multiply %1, %3 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<2x64xf32>
  return %4 : tensor<2x64xf32>
}

// Unchanged: a slice of the sum moves its rows, so that they and those of its operands stay on devices 0 and 1.
// CHECK-LABEL: func.func @stays_with_users
func.func @stays_with_users(%arg0: tensor<2x64xf32>, %arg1: tensor<2x64xf32>) -> tensor<1x64xf32> {
  // CHECK-NOT:   "x":(1)2
  // CHECK:       return
  %0 = sdy.reshard %arg0 <@mesh, [{"x"}, {}]> : tensor<2x64xf32>
  %1 = sdy.reshard %arg1 <@mesh, [{"x"}, {}]> : tensor<2x64xf32>
  %2 = stablehlo.add %0, %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<2x64xf32>
  %3 = stablehlo.slice %2 [1:2, 0:64] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<2x64xf32>) -> tensor<1x64xf32>
  return %3 : tensor<1x64xf32>
}

// Unchanged: the operand is sharded along "x", so that half of its columns would be gathered first.
// CHECK-LABEL: func.func @columns_to_rows
func.func @columns_to_rows(%arg0: tensor<2x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> tensor<2x64xf32> {
  // CHECK-NEXT:  sdy.reshard %arg0 <@mesh, [{"x"}, {}]>
  %0 = sdy.reshard %arg0 <@mesh, [{"x"}, {}]> : tensor<2x64xf32>
  return %0 : tensor<2x64xf32>
}

// One row: the product of the columns keeps "x", but slices the row that all devices have.
// CHECK-LABEL: func.func @one_row_of_split_columns
func.func @one_row_of_split_columns(%arg0: tensor<1x64xf32>, %arg1: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> tensor<1x64xf32> {
  // CHECK-NEXT:  stablehlo.negate %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>}
  // CHECK-NEXT:  stablehlo.dot {{.*}}[{"x"}, {}]
  %0 = stablehlo.negate %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<1x64xf32>
  %1 = stablehlo.dot %0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<1x64xf32>, tensor<64x64xf32>) -> tensor<1x64xf32>
  return %1 : tensor<1x64xf32>
}
