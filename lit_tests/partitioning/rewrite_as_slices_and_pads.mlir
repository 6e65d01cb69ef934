// RUN: sdy-opt %s -sdy-rewrite-as-slices-and-pads | filecheck %s

sdy.mesh @mesh = <["x"=4]>

// Start indices are clamped, as of the second slice, which would be out of bounds; the third index is not constant.
// CHECK-LABEL: func.func @dynamic_slices
func.func @dynamic_slices(%arg0: tensor<12x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg1: tensor<i32>) -> (tensor<8x3xf32>, tensor<8x2xf32>, tensor<8x3xf32>) {
  // CHECK:       stablehlo.slice %arg0 [2:10, 0:3] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}
  // CHECK-NEXT:  stablehlo.slice %arg0 [4:12, 0:2]
  // CHECK-NEXT:  stablehlo.dynamic_slice %arg0, %arg1
  %two = stablehlo.constant dense<2> : tensor<i32>
  %nine = stablehlo.constant dense<9> : tensor<i32>
  %less = stablehlo.constant dense<-1> : tensor<i32>
  %0 = stablehlo.dynamic_slice %arg0, %two, %less, sizes = [8, 3] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<12x3xf32>, tensor<i32>, tensor<i32>) -> tensor<8x3xf32>
  %1 = stablehlo.dynamic_slice %arg0, %nine, %less, sizes = [8, 2] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<12x3xf32>, tensor<i32>, tensor<i32>) -> tensor<8x2xf32>
  %2 = stablehlo.dynamic_slice %arg0, %arg1, %less, sizes = [8, 3] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<12x3xf32>, tensor<i32>, tensor<i32>) -> tensor<8x3xf32>
  return %0, %1, %2 : tensor<8x3xf32>, tensor<8x2xf32>, tensor<8x3xf32>
}

// CHECK-LABEL: func.func @computed_index
func.func @computed_index(%arg0: tensor<12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  // CHECK: stablehlo.slice %arg0 [3:11] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
  %c = stablehlo.constant dense<5> : tensor<ui8>
  %c_0 = stablehlo.constant dense<254> : tensor<ui8>
  %start = stablehlo.add %c, %c_0 : tensor<ui8>
  %0 = stablehlo.dynamic_slice %arg0, %start, sizes = [8] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<12xf32>, tensor<ui8>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// A window at constant indices becomes a slice. One row is gathered, as are two windows.
// CHECK-LABEL: func.func @windows
func.func @windows(%arg0: tensor<12x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg1: tensor<1xi32>, %arg2: tensor<2x1xi32>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<1x3xf32>, tensor<2x2x3xf32>) {
  // CHECK:       %[[START:.*]] = stablehlo.reshape %arg1
  // CHECK:       stablehlo.dynamic_slice %arg0, %[[START]], %{{.*}}, sizes = [2, 3] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>}
  // CHECK:       stablehlo.slice %arg0 [10:12, 0:3]
  // CHECK-COUNT-2: "stablehlo.gather"
  %0 = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 1], start_index_map = [0]>, slice_sizes = array<i64: 2, 3>}> {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : (tensor<12x3xf32>, tensor<1xi32>) -> tensor<2x3xf32>
  %twenty = stablehlo.constant dense<20> : tensor<1xi32>
  %1 = "stablehlo.gather"(%arg0, %twenty) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 1], start_index_map = [0]>, slice_sizes = array<i64: 2, 3>}> {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : (tensor<12x3xf32>, tensor<1xi32>) -> tensor<2x3xf32>
  %2 = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 1], start_index_map = [0]>, slice_sizes = array<i64: 1, 3>}> {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : (tensor<12x3xf32>, tensor<1xi32>) -> tensor<1x3xf32>
  %3 = "stablehlo.gather"(%arg0, %arg2) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 2, 3>}> {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}, {}]>]>} : (tensor<12x3xf32>, tensor<2x1xi32>) -> tensor<2x2x3xf32>
  return %0, %1, %2, %3 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<1x3xf32>, tensor<2x2x3xf32>
}

// CHECK-LABEL: func.func @concatenations
func.func @concatenations(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %arg1: tensor<f32>) -> (tensor<11xf32>, tensor<10xf32>, tensor<12xf32>) {
  // CHECK:       stablehlo.pad %arg0, %arg1, low = [3], high = [0], interior = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
  // CHECK:       %[[ZERO:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  // CHECK:       stablehlo.pad %arg0, %[[ZERO]], low = [1], high = [1], interior = [0]
  %0 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<3xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<1xf32>
  %1 = stablehlo.concatenate %0, %arg0, dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<3xf32>, tensor<8xf32>) -> tensor<11xf32>
  %2 = stablehlo.concatenate %zero, %arg0, %zero, dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<1xf32>, tensor<8xf32>, tensor<1xf32>) -> tensor<10xf32>
  // CHECK:       stablehlo.concatenate
  %3 = stablehlo.concatenate %zero, %arg0, %0, dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<1xf32>, tensor<8xf32>, tensor<3xf32>) -> tensor<12xf32>
  return %1, %2, %3 : tensor<11xf32>, tensor<10xf32>, tensor<12xf32>
}

// Unchanged: +0.0 and -0.0 are different padding values.
// CHECK-LABEL: func.func @zeros
func.func @zeros(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<10xf32> {
  // CHECK:       stablehlo.concatenate
  %zero = stablehlo.constant dense<0.0> : tensor<1xf32>
  %negative = stablehlo.constant dense<-0.0> : tensor<1xf32>
  %0 = stablehlo.concatenate %zero, %arg0, %negative, dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<1xf32>, tensor<8xf32>, tensor<1xf32>) -> tensor<10xf32>
  return %0 : tensor<10xf32>
}

// The stride and the interior padding of a single row do not matter.
// CHECK-LABEL: func.func @one_row
func.func @one_row(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg1: tensor<1x4xf32>, %arg2: tensor<f32>) -> (tensor<1x2xf32>, tensor<8x7xf32>, tensor<2x4xf32>) {
  // CHECK-NEXT:  stablehlo.slice %arg0 [6:7, 0:4:2]
  // CHECK-NEXT:  stablehlo.pad %arg1, %arg2, low = [6, 0], high = [1, 0], interior = [0, 1]
  // CHECK-NEXT:  stablehlo.slice %arg0 [1:7:5, 0:4]
  %0 = stablehlo.slice %arg0 [6:8:3, 0:4:2] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<8x4xf32>) -> tensor<1x2xf32>
  %1 = stablehlo.pad %arg1, %arg2, low = [6, 0], high = [1, 0], interior = [2, 1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<1x4xf32>, tensor<f32>) -> tensor<8x7xf32>
  %2 = stablehlo.slice %arg0 [1:7:5, 0:4] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<8x4xf32>) -> tensor<2x4xf32>
  return %0, %1, %2 : tensor<1x2xf32>, tensor<8x7xf32>, tensor<2x4xf32>
}

// CHECK-LABEL: func.func @identities
func.func @identities(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %arg1: tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  // CHECK-NEXT:  %[[RESHARDED:.*]] = sdy.reshard %arg0 <@mesh, [{}]>
  // CHECK-NEXT:  %[[SHIFTED:.*]] = stablehlo.pad %arg0, %arg1, low = [1], high = [-1]
  // CHECK-NEXT:  return %arg0, %[[RESHARDED]], %[[SHIFTED]]
  %0 = stablehlo.pad %arg0, %arg1, low = [0], high = [0], interior = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %1 = stablehlo.slice %arg0 [0:8] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  %2 = stablehlo.pad %arg0, %arg1, low = [1], high = [-1], interior = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  return %0, %1, %2 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: func.func @products_with_ones
func.func @products_with_ones(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  // CHECK:      %[[RESHARDED:.*]] = sdy.reshard %arg0 <@mesh, [{}]>
  // CHECK-NEXT: %[[SQUARE:.*]] = stablehlo.multiply %arg0, %arg0
  // CHECK-NEXT: return %arg0, %[[RESHARDED]], %[[SQUARE]]
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %ones = stablehlo.broadcast_in_dim %one, dims = [] : (tensor<f32>) -> tensor<8xf32>
  %0 = stablehlo.multiply %ones, %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
  %1 = stablehlo.multiply %arg0, %ones {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : tensor<8xf32>
  %2 = stablehlo.multiply %arg0, %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
  return %0, %1, %2 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
