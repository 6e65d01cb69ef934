// RUN: sdy-opt %s -sdy-insert-explicit-reshards="enable-full-version=true least-communication=true" | filecheck %s

sdy.mesh @mesh = <["x"=4]>

// Each device has the full left operand, and gathering the right one moves fewer bytes than gathering the result.
// CHECK-LABEL: func.func @operand_gathered
func.func @operand_gathered(%arg0: tensor<512x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<512x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  // CHECK-NEXT:  %0 = sdy.reshard %arg1 <@mesh, [{}, {}]>
  // CHECK-NEXT:  %1 = stablehlo.dot %arg0, %0
  // CHECK-NEXT:  return %1
  %0 = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : (tensor<512x8xf32>, tensor<8x8xf32>) -> tensor<512x8xf32>
  return %0 : tensor<512x8xf32>
}

// CHECK-LABEL: func.func @small_result_summed
func.func @small_result_summed(%arg0: tensor<2x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg1: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<2x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  // CHECK-NEXT:  %0 = sdy.reshard %arg0 <@mesh, [{}, {"x"}]>
  // CHECK-NEXT:  %1 = stablehlo.dot %0, %arg1
  // CHECK-NEXT:  sdy.all_reduce {"x"} %1
  %0 = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : (tensor<2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
  return %0 : tensor<2x64xf32>
}

// Gathering the right operand would move fewer bytes, but each device would compute four times as much.
// CHECK-LABEL: func.func @much_work
func.func @much_work(%arg0: tensor<8192x4096xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg1: tensor<4096x4096xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<8192x4096xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  // CHECK-NEXT:  %0 = sdy.reshard %arg0 <@mesh, [{}, {"x"}]>
  // CHECK-NEXT:  %1 = stablehlo.dot %0, %arg1
  // CHECK-NEXT:  sdy.all_reduce {"x"} %1
  %0 = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : (tensor<8192x4096xf32>, tensor<4096x4096xf32>) -> tensor<8192x4096xf32>
  return %0 : tensor<8192x4096xf32>
}

// A slice in each iteration of a loop: its operand is gathered once, rather than each of the four slices.
// CHECK-LABEL: func.func @slices_in_turn
func.func @slices_in_turn(%arg0: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg1: tensor<1x8xf32>, %arg2: tensor<i32>) -> tensor<1x8xf32> {
  // CHECK:       %[[WHOLE:.*]] = sdy.reshard %iterArg <@mesh, [{}, {}]>
  // CHECK-NEXT:  %[[SLICE:.*]] = stablehlo.dynamic_slice %[[WHOLE]]
  // CHECK-NEXT:  stablehlo.add %{{.*}}, %[[SLICE]]
  %0 = sdy.constant dense<0> : tensor<i32>
  %1 = sdy.constant dense<1> : tensor<i32>
  %2 = sdy.constant dense<4> : tensor<i32>
  %3:3 = stablehlo.while(%rows = %arg0, %i = %0, %sum = %arg1) : tensor<4x8xf32>, tensor<i32>, tensor<1x8xf32> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>, <@mesh, []>, <@mesh, [{}, {}]>]>}
  cond {
    %4 = stablehlo.compare LT, %i, %2 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %4 : tensor<i1>
  } do {
    %4 = stablehlo.dynamic_slice %rows, %i, %0, sizes = [1, 8] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>
    %5 = stablehlo.add %sum, %4 : tensor<1x8xf32>
    %6 = stablehlo.add %i, %1 : tensor<i32>
    stablehlo.return %rows, %6, %5 : tensor<4x8xf32>, tensor<i32>, tensor<1x8xf32>
  }
  return %3#2 : tensor<1x8xf32>
}

// The carried value, which changes in each iteration, is sharded along another dimension, and the slice is gathered.
// CHECK-LABEL: func.func @slices_of_what_changes
func.func @slices_of_what_changes(%arg0: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg1: tensor<1x8xf32>, %arg2: tensor<i32>) -> tensor<1x8xf32> {
  // CHECK:       %[[OTHERWISE:.*]] = sdy.reshard %iterArg <@mesh, [{}, {"x"}]>
  // CHECK-NEXT:  %[[SLICE:.*]] = stablehlo.dynamic_slice %[[OTHERWISE]]
  // CHECK-NEXT:  sdy.reshard %[[SLICE]] <@mesh, [{}, {}]>
  %0 = sdy.constant dense<0> : tensor<i32>
  %1 = sdy.constant dense<1> : tensor<i32>
  %2 = sdy.constant dense<4> : tensor<i32>
  %3:3 = stablehlo.while(%rows = %arg0, %i = %0, %sum = %arg1) : tensor<4x8xf32>, tensor<i32>, tensor<1x8xf32> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>, <@mesh, []>, <@mesh, [{}, {}]>]>}
  cond {
    %4 = stablehlo.compare LT, %i, %2 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %4 : tensor<i1>
  } do {
    %4 = stablehlo.dynamic_slice %rows, %i, %0, sizes = [1, 8] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>
    %5 = stablehlo.add %sum, %4 : tensor<1x8xf32>
    %6 = stablehlo.add %i, %1 : tensor<i32>
    %7 = stablehlo.negate %rows {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<4x8xf32>
    stablehlo.return %7, %6, %5 : tensor<4x8xf32>, tensor<i32>, tensor<1x8xf32>
  }
  return %3#2 : tensor<1x8xf32>
}

// A value from before a branch is gathered inside of the branch.
// CHECK-LABEL: func.func @branch
func.func @branch(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %arg1: tensor<i1>, %arg2: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NEXT:  "stablehlo.if"(%arg1) ({
  // CHECK-NEXT:    %[[WHOLE:.*]] = sdy.reshard %arg0 <@mesh, [{}]>
  // CHECK-NEXT:    stablehlo.return %[[WHOLE]]
  %0 = "stablehlo.if"(%arg1) ({
    stablehlo.return %arg0 : tensor<8xf32>
  }, {
    stablehlo.return %arg2 : tensor<8xf32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<i1>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// Rows that are written one by one can be sharded, although each is a window.
// CHECK-LABEL: func.func @windows_of_one_row
func.func @windows_of_one_row(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg1: tensor<6x1xi32>, %arg2: tensor<6x1x4xf32>) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  // CHECK-NEXT:  "stablehlo.scatter"(%arg0, %arg1, %arg2)
  // CHECK-NOT:   sdy.reshard
  %0 = "stablehlo.scatter"(%arg0, %arg1, %arg2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %1 = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<8x4xf32>, tensor<6x1xi32>, tensor<6x1x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// The transform requires replication of the columns. The rows could be sharded instead, but the result has twice the
// bytes: gathering the operand moves fewer bytes.
// CHECK-LABEL: func.func @transform_of_what_is_gathered
func.func @transform_of_what_is_gathered(%arg0: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> (tensor<64x33xcomplex<f32>> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  // CHECK-NEXT:  %0 = sdy.reshard %arg0 <@mesh, [{}, {}]>
  // CHECK-NEXT:  %1 = stablehlo.fft %0
  // CHECK-NEXT:  return %1
  %0 = stablehlo.fft %arg0, type = RFFT, length = [64] : (tensor<64x64xf32>) -> tensor<64x33xcomplex<f32>>
  return %0 : tensor<64x33xcomplex<f32>>
}

// CHECK-LABEL: func.func @transform_of_rows
func.func @transform_of_rows(%arg0: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> (tensor<64x33xcomplex<f32>> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  // CHECK-NEXT:  %0 = sdy.reshard %arg0 <@mesh, [{"x"}, {}]>
  // CHECK-NEXT:  %1 = stablehlo.fft %0
  // CHECK-NEXT:  return %1
  %0 = stablehlo.fft %arg0, type = RFFT, length = [64] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<64x64xf32>) -> tensor<64x33xcomplex<f32>>
  return %0 : tensor<64x33xcomplex<f32>>
}

// Devices exchange the eight rows that are used and reshard them: an all-to-all of the operand would move all 64.
// CHECK-LABEL: func.func @slice_resharded
func.func @slice_resharded(%arg0: tensor<64x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) {
  // CHECK-NEXT:  %0 = stablehlo.slice %arg0 [24:32, 0:8] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}
  // CHECK-NEXT:  %1 = sdy.reshard %0 <@mesh, [{}, {"x"}]>
  // CHECK-NEXT:  return %1
  %0 = stablehlo.slice %arg0 [24:32, 0:8] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : (tensor<64x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// Slices that together cover the operand share its reshard, and need no halo exchange.
// CHECK-LABEL: func.func @operand_of_slices_resharded
func.func @operand_of_slices_resharded(%arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}, tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) {
  // CHECK-COUNT-2: sdy.reshard %arg0 <@mesh, [{}, {"x"}]>
  // CHECK-NOT:     sdy.reshard
  %0 = stablehlo.slice %arg0 [0:8, 0:8] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : (tensor<16x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.slice %arg0 [8:16, 0:8] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : (tensor<16x8xf32>) -> tensor<8x8xf32>
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
}

// The program reshards the operand already, so the slice of the copy is free.
// CHECK-LABEL: func.func @slice_of_copy
func.func @slice_of_copy(%arg0: tensor<64x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<64x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) {
  // CHECK-NEXT:  %0 = sdy.reshard %arg0 <@mesh, [{}, {}]>
  // CHECK-NEXT:  %1 = sdy.reshard %arg0 <@mesh, [{}, {"x"}]>
  // CHECK-NEXT:  %2 = stablehlo.slice %1 [24:32, 0:8]
  // CHECK-NEXT:  return %0, %2
  %0 = sdy.reshard %arg0 <@mesh, [{}, {}]> : tensor<64x8xf32>
  %1 = stablehlo.slice %arg0 [24:32, 0:8] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : (tensor<64x8xf32>) -> tensor<8x8xf32>
  return %0, %1 : tensor<64x8xf32>, tensor<8x8xf32>
}

// The result of a pad is larger than its operand, so the operand is resharded.
// CHECK-LABEL: func.func @padded_resharded
func.func @padded_resharded(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg1: tensor<f32>) -> (tensor<64x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) {
  // CHECK-NEXT:  %0 = sdy.reshard %arg0 <@mesh, [{}, {"x"}]>
  // CHECK-NEXT:  %1 = stablehlo.pad %0, %arg1
  // CHECK-NEXT:  return %1
  %0 = stablehlo.pad %arg0, %arg1, low = [8, 0], high = [48, 0], interior = [0, 0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : (tensor<8x8xf32>, tensor<f32>) -> tensor<64x8xf32>
  return %0 : tensor<64x8xf32>
}

// The last row is sent, not all rows that the constraint asks for and only the slice uses: canonicalization merges both
// reshards in front of the slice.
// CHECK-LABEL: func.func @slice_before_reshard
func.func @slice_before_reshard(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<1x8xf32> {
  // CHECK:       %[[SPLIT:.*]] = sdy.reshard %{{.*}} <@mesh, [{"x"}, {}]>
  // CHECK-NEXT:  %[[ROW:.*]] = stablehlo.slice %[[SPLIT]] [7:8, 0:8]
  // CHECK-NEXT:  sdy.reshard %[[ROW]] <@mesh, [{}, {}]>
  %0 = sdy.reshard %arg0 <@mesh, [{}, {}]> : tensor<8x8xf32>
  %1 = stablehlo.slice %0 [7:8, 0:8] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : (tensor<8x8xf32>) -> tensor<1x8xf32>
  return %1 : tensor<1x8xf32>
}

// CHECK-LABEL: func.func @all_rows_are_used
func.func @all_rows_are_used(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<8x8xf32>, tensor<1x8xf32>) {
  // CHECK-NEXT:  %[[WHOLE:.*]] = sdy.reshard %arg0 <@mesh, [{}, {}]>
  // CHECK-NEXT:  stablehlo.slice %[[WHOLE]] [7:8, 0:8]
  %0 = sdy.reshard %arg0 <@mesh, [{}, {}]> : tensor<8x8xf32>
  %1 = stablehlo.slice %0 [7:8, 0:8] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : (tensor<8x8xf32>) -> tensor<1x8xf32>
  return %0, %1 : tensor<8x8xf32>, tensor<1x8xf32>
}
