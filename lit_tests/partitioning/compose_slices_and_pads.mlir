// RUN: sdy-opt %s -sdy-compose-slices-and-pads | filecheck %s

sdy.mesh @mesh = <["x"=4, "y"=2]>

// CHECK-LABEL: func.func @causal_shift
func.func @causal_shift(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %arg1: tensor<f32>) -> tensor<8xf32> {
  // CHECK-NEXT:  %[[SHIFTED:.*]] = stablehlo.pad %arg0, %arg1, low = [1], high = [-1], interior = [0] {{.*}}[{"x"}]{{.*}} -> tensor<8xf32>
  // CHECK-NEXT:  return %[[SHIFTED]]
  %0 = stablehlo.pad %arg0, %arg1, low = [1], high = [0], interior = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>, tensor<f32>) -> tensor<9xf32>
  %1 = stablehlo.slice %0 [0:8] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<9xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// The last slice cancels the padding.
// CHECK-LABEL: func.func @slices_of_one_pad
func.func @slices_of_one_pad(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %arg1: tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK-NEXT:  %[[SHIFTED:.*]] = stablehlo.pad %arg0, %arg1, low = [1], high = [-1], interior = [0]
  // CHECK-NEXT:  return %[[SHIFTED]], %arg0
  %0 = stablehlo.pad %arg0, %arg1, low = [1], high = [0], interior = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>, tensor<f32>) -> tensor<9xf32>
  %1 = stablehlo.slice %0 [0:8] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<9xf32>) -> tensor<8xf32>
  %2 = stablehlo.slice %0 [1:9] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<9xf32>) -> tensor<8xf32>
  return %1, %2 : tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: func.func @all_of_it_split_otherwise
func.func @all_of_it_split_otherwise(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %arg1: tensor<f32>) -> tensor<8xf32> {
  // CHECK-NEXT:  %[[RESULT:.*]] = sdy.reshard %arg0 <@mesh, [{"y"}]>
  // CHECK-NEXT:  return %[[RESULT]]
  %0 = stablehlo.pad %arg0, %arg1, low = [1], high = [0], interior = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>, tensor<f32>) -> tensor<9xf32>
  %1 = stablehlo.slice %0 [1:9] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}]>]>} : (tensor<9xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// CHECK-LABEL: func.func @pad_of_a_slice
func.func @pad_of_a_slice(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg1: tensor<f32>) -> tensor<8x4xf32> {
  // CHECK-NEXT:  %[[SHIFTED:.*]] = stablehlo.pad %arg0, %arg1, low = [2, 0], high = [-2, 0], interior = [0, 0]
  // CHECK-NEXT:  return %[[SHIFTED]]
  %0 = stablehlo.slice %arg0 [0:6, 0:4] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<8x4xf32>) -> tensor<6x4xf32>
  %1 = stablehlo.pad %0, %arg1, low = [2, 0], high = [0, 0], interior = [0, 0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<6x4xf32>, tensor<f32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}

// Negative padding cuts off interior padding like rows.
// CHECK-LABEL: func.func @holes
func.func @holes(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %arg1: tensor<f32>) -> tensor<29xf32> {
  // CHECK-NEXT:  %[[RESULT:.*]] = stablehlo.pad %arg0, %arg1, low = [-3], high = [3], interior = [3] {{.*}} -> tensor<29xf32>
  // CHECK-NEXT:  return %[[RESULT]]
  %0 = stablehlo.pad %arg0, %arg1, low = [1], high = [2], interior = [1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>, tensor<f32>) -> tensor<18xf32>
  %1 = stablehlo.pad %0, %arg1, low = [-5], high = [-1], interior = [1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<18xf32>, tensor<f32>) -> tensor<29xf32>
  return %1 : tensor<29xf32>
}

// CHECK-LABEL: func.func @slice_of_a_slice
func.func @slice_of_a_slice(%arg0: tensor<32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<5xf32> {
  // CHECK-NEXT:  %[[RESULT:.*]] = stablehlo.slice %arg0 [5:32:6]
  // CHECK-NEXT:  return %[[RESULT]]
  %0 = stablehlo.slice %arg0 [1:32:2] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<32xf32>) -> tensor<16xf32>
  %1 = stablehlo.slice %0 [2:16:3] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<16xf32>) -> tensor<5xf32>
  return %1 : tensor<5xf32>
}

// CHECK-LABEL: func.func @slice_of_a_concatenation
func.func @slice_of_a_concatenation(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<10xf32> {
  // CHECK-NEXT:  %[[FIRST:.*]] = stablehlo.slice %arg0 [3:8]
  // CHECK-NEXT:  %[[SECOND:.*]] = stablehlo.slice %arg1 [0:5]
  // CHECK-NEXT:  %[[RESULT:.*]] = stablehlo.concatenate %[[FIRST]], %[[SECOND]], dim = 0 {{.*}} -> tensor<10xf32>
  // CHECK-NEXT:  return %[[RESULT]]
  %0 = stablehlo.concatenate %arg0, %arg1, dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %1 = stablehlo.slice %0 [3:13] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<16xf32>) -> tensor<10xf32>
  return %1 : tensor<10xf32>
}

// The gradient of two slices of one pad: the padded tensor itself is never sliced.
// CHECK-LABEL: func.func @slice_of_a_sum
func.func @slice_of_a_sum(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %arg1: tensor<f32>) -> tensor<8xf32> {
  // CHECK:       %[[SHIFTED:.*]] = stablehlo.pad %arg0, %arg1, low = [-1], high = [1], interior = [0]
  // CHECK-NEXT:  %[[SUM:.*]] = stablehlo.add %[[SHIFTED]], %arg0 {{.*}} : tensor<8xf32>
  // CHECK-NEXT:  %[[SCALAR:.*]] = stablehlo.constant dense<1.000000e+00> : tensor<f32>
  // CHECK-NEXT:  %[[ONE:.*]] = stablehlo.broadcast_in_dim %[[SCALAR]], dims = []
  // CHECK-NEXT:  %[[RESULT:.*]] = stablehlo.add %[[SUM]], %[[ONE]] {{.*}} : tensor<8xf32>
  // CHECK-NEXT:  return %[[RESULT]]
  %one = stablehlo.constant dense<1.0> : tensor<9xf32>
  %0 = stablehlo.pad %arg0, %arg1, low = [0], high = [1], interior = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>, tensor<f32>) -> tensor<9xf32>
  %1 = stablehlo.pad %arg0, %arg1, low = [1], high = [0], interior = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>, tensor<f32>) -> tensor<9xf32>
  %2 = stablehlo.add %0, %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<9xf32>
  %3 = stablehlo.add %2, %one {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<9xf32>
  %4 = stablehlo.pad %3, %arg1, low = [-1], high = [0], interior = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<9xf32>, tensor<f32>) -> tensor<8xf32>
  return %4 : tensor<8xf32>
}

// CHECK-LABEL: func.func @another_user
func.func @another_user(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %arg1: tensor<f32>) -> (tensor<9xf32>, tensor<8xf32>) {
  // CHECK-NEXT:  stablehlo.pad
  // CHECK-NEXT:  stablehlo.slice
  %0 = stablehlo.pad %arg0, %arg1, low = [1], high = [0], interior = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>, tensor<f32>) -> tensor<9xf32>
  %1 = stablehlo.slice %0 [0:8] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<9xf32>) -> tensor<8xf32>
  return %0, %1 : tensor<9xf32>, tensor<8xf32>
}

// Unchanged: the slice drops a row, the padding values differ, and no single pad has the stride of the sliced padding.
// CHECK-LABEL: func.func @not_one_pad
func.func @not_one_pad(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %arg1: tensor<f32>, %arg2: tensor<f32>) -> (tensor<8xf32>, tensor<12xf32>, tensor<5xf32>) {
  // CHECK-NEXT:  stablehlo.slice
  // CHECK-NEXT:  stablehlo.pad
  %0 = stablehlo.slice %arg0 [1:8] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<7xf32>
  %1 = stablehlo.pad %0, %arg1, low = [1], high = [0], interior = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<7xf32>, tensor<f32>) -> tensor<8xf32>
  // CHECK-NEXT:  stablehlo.pad
  // CHECK-NEXT:  stablehlo.pad
  %2 = stablehlo.pad %arg0, %arg1, low = [1], high = [0], interior = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>, tensor<f32>) -> tensor<9xf32>
  %3 = stablehlo.pad %2, %arg2, low = [3], high = [0], interior = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<9xf32>, tensor<f32>) -> tensor<12xf32>
  // CHECK-NEXT:  stablehlo.pad
  // CHECK-NEXT:  stablehlo.slice
  %4 = stablehlo.pad %arg0, %arg1, low = [1], high = [0], interior = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>, tensor<f32>) -> tensor<9xf32>
  %5 = stablehlo.slice %4 [0:9:2] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<9xf32>) -> tensor<5xf32>
  return %1, %3, %5 : tensor<8xf32>, tensor<12xf32>, tensor<5xf32>
}

// Unchanged: slices and pads of an unsplit dimension need no communication.
// CHECK-LABEL: func.func @along_another_dimension
func.func @along_another_dimension(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg1: tensor<f32>) -> tensor<8x4xf32> {
  // CHECK-NEXT:  stablehlo.pad
  // CHECK-NEXT:  stablehlo.slice
  %0 = stablehlo.pad %arg0, %arg1, low = [0, 1], high = [0, 0], interior = [0, 0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x5xf32>
  %1 = stablehlo.slice %0 [0:8, 0:4] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<8x5xf32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}

// A concatenation of slices reads rows of the sliced tensor.
// CHECK-LABEL: func.func @rotation_of_a_pad
func.func @rotation_of_a_pad(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %arg1: tensor<f32>) -> tensor<12xf32> {
  // CHECK-NEXT:  stablehlo.pad
  // CHECK-NEXT:  stablehlo.slice
  // CHECK-NEXT:  stablehlo.slice
  // CHECK-NEXT:  stablehlo.concatenate
  %0 = stablehlo.pad %arg0, %arg1, low = [4], high = [0], interior = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>, tensor<f32>) -> tensor<12xf32>
  %1 = stablehlo.slice %0 [11:12] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<12xf32>) -> tensor<1xf32>
  %2 = stablehlo.slice %0 [0:11] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<12xf32>) -> tensor<11xf32>
  %3 = stablehlo.concatenate %1, %2, dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<1xf32>, tensor<11xf32>) -> tensor<12xf32>
  return %3 : tensor<12xf32>
}

// All rows of each slice are of one operand, which is resharded.
// CHECK-LABEL: func.func @slices_of_a_concatenation
func.func @slices_of_a_concatenation(%arg0: tensor<8x4xf32>, %arg1: tensor<8x6xf32>) -> (tensor<8x4xf32>, tensor<8x3xf32>) {
  // CHECK-NEXT:  %[[FIRST:.*]] = sdy.reshard %arg0 <@mesh, [{"x"}, {}]> : tensor<8x4xf32>
  // CHECK-NEXT:  %[[SECOND:.*]] = stablehlo.slice %arg1 [0:8, 1:6:2] : (tensor<8x6xf32>) -> tensor<8x3xf32>
  // CHECK-NEXT:  return %[[FIRST]], %[[SECOND]]
  %0 = stablehlo.concatenate %arg0, %arg1, dim = 1 : (tensor<8x4xf32>, tensor<8x6xf32>) -> tensor<8x10xf32>
  %1 = stablehlo.slice %0 [0:8, 0:4] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<8x10xf32>) -> tensor<8x4xf32>
  %2 = stablehlo.slice %0 [0:8, 5:10:2] : (tensor<8x10xf32>) -> tensor<8x3xf32>
  return %1, %2 : tensor<8x4xf32>, tensor<8x3xf32>
}

// One of the slices has rows of both operands: the concatenation stays in memory, so that both read it.
// CHECK-LABEL: func.func @slice_of_two_operands
func.func @slice_of_two_operands(%arg0: tensor<8x4xf32>, %arg1: tensor<8x6xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  // CHECK-NEXT:  %[[ALL:.*]] = stablehlo.concatenate %arg0, %arg1, dim = 1
  // CHECK-NEXT:  stablehlo.slice %[[ALL]] [0:8, 0:4]
  // CHECK-NEXT:  stablehlo.slice %[[ALL]] [0:8, 2:6]
  %0 = stablehlo.concatenate %arg0, %arg1, dim = 1 : (tensor<8x4xf32>, tensor<8x6xf32>) -> tensor<8x10xf32>
  %1 = stablehlo.slice %0 [0:8, 0:4] : (tensor<8x10xf32>) -> tensor<8x4xf32>
  %2 = stablehlo.slice %0 [0:8, 2:6] : (tensor<8x10xf32>) -> tensor<8x4xf32>
  return %1, %2 : tensor<8x4xf32>, tensor<8x4xf32>
}
