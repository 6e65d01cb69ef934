// RUN: sdy-opt %s -verify-diagnostics -sdy-pad-for-divisibility | filecheck %s --check-prefixes=CHECK,SHARDY
// RUN: sdy-opt %s -sdy-pad-for-divisibility='preserve-semantics=true' | filecheck %s --check-prefixes=CHECK,MASKED

sdy.mesh @mesh = <["x"=4]>

// The padding of a slice's result is the rows that follow in the operand.
// CHECK-LABEL: func.func @slice
func.func @slice(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<6xf32> {
  // CHECK:       stablehlo.slice %arg0 [0:8]
  // CHECK-NEXT:  sdy.all_gather [{"x"}] {{.*}} : tensor<8xf32>
  // CHECK-NEXT:  stablehlo.slice {{.*}} [0:6]
  %0 = stablehlo.slice %arg0 [0:6] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<6xf32>
  %1 = sdy.all_gather [{"x"}] %0 out_sharding=<@mesh, [{}]> : tensor<6xf32>
  return %1 : tensor<6xf32>
}

// The operand's padding takes the place of high padding, so that it needs the padding value.
// CHECK-LABEL: func.func @pad
func.func @pad(%arg0: tensor<7xf32>, %arg1: tensor<f32>) -> tensor<10xf32> {
  // CHECK:       %[[PART:.*]] = sdy.all_slice
  // MASKED:      %[[FILLED:.*]] = stablehlo.select %{{.*}}, %[[PART]], %{{.*}} : tensor<8xi1>, tensor<8xf32>
  // MASKED-NEXT: stablehlo.pad %[[FILLED]], %arg1, low = [1], high = [3], interior = [0] {{.*}} -> tensor<12xf32>
  // SHARDY-NEXT: stablehlo.pad %[[PART]], %arg1, low = [1], high = [3], interior = [0] {{.*}} -> tensor<12xf32>
  %0 = sdy.all_slice [{"x"}] %arg0 out_sharding=<@mesh, [{"x"}]> : tensor<7xf32>
  // expected-warning @+1 {{'stablehlo.pad' op exposes the padding of its operand along dimension 0 in place of its own padding value; set preserve-semantics to mask it}}
  %1 = stablehlo.pad %0, %arg1, low = [1], high = [2], interior = [0]
    {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<7xf32>, tensor<f32>) -> tensor<10xf32>
  %2 = sdy.all_gather [{"x"}] %1 out_sharding=<@mesh, [{}]> : tensor<10xf32>
  return %2 : tensor<10xf32>
}

// An operand of even size has no padding.
// CHECK-LABEL: func.func @pad_of_an_even_size
func.func @pad_of_an_even_size(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %arg1: tensor<f32>)
    -> tensor<10xf32> {
  // CHECK:       stablehlo.pad %arg0, %arg1, low = [1], high = [3], interior = [0] {{.*}} -> tensor<12xf32>
  %0 = stablehlo.pad %arg0, %arg1, low = [1], high = [1], interior = [0]
    {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>, tensor<f32>) -> tensor<10xf32>
  %1 = sdy.all_gather [{"x"}] %0 out_sharding=<@mesh, [{}]> : tensor<10xf32>
  return %1 : tensor<10xf32>
}

// With interior padding; Shardy masks the operand though its padding is beyond the end of the result.
// CHECK-LABEL: func.func @pad_between
func.func @pad_between(%arg0: tensor<7xf32>, %arg1: tensor<f32>) -> tensor<15xf32> {
  // CHECK:       %[[PART:.*]] = sdy.all_slice
  // MASKED-NEXT: stablehlo.pad %[[PART]], %arg1, low = [1], high = [0], interior = [1] {{.*}} -> tensor<16xf32>
  // SHARDY:      %[[FILLED:.*]] = stablehlo.select %{{.*}}, %[[PART]], %{{.*}} : tensor<8xi1>, tensor<8xf32>
  // SHARDY-NEXT: stablehlo.pad %[[FILLED]], %arg1, low = [1], high = [0], interior = [1] {{.*}} -> tensor<16xf32>
  %0 = sdy.all_slice [{"x"}] %arg0 out_sharding=<@mesh, [{"x"}]> : tensor<7xf32>
  %1 = stablehlo.pad %0, %arg1, low = [1], high = [1], interior = [1]
    {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<7xf32>, tensor<f32>) -> tensor<15xf32>
  %2 = sdy.all_gather [{"x"}] %1 out_sharding=<@mesh, [{}]> : tensor<15xf32>
  return %2 : tensor<15xf32>
}

// The results of windows over the padding are cut off.
// CHECK-LABEL: func.func @convolution
func.func @convolution(%arg0: tensor<1x7x1xf32>, %arg1: tensor<3x1x1xf32>) -> tensor<1x5x1xf32> {
  // CHECK:       %[[MORE:.*]] = stablehlo.convolution
  // CHECK-SAME:    (tensor<1x8x1xf32>, tensor<3x1x1xf32>) -> tensor<1x6x1xf32>
  // CHECK-NEXT:  stablehlo.slice %[[MORE]] [0:1, 0:5, 0:1]
  %0 = sdy.all_slice [{}, {"x"}, {}] %arg0 out_sharding=<@mesh, [{}, {"x"}, {}]> : tensor<1x7x1xf32>
  %1 = stablehlo.convolution(%0, %arg1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x7x1xf32>, tensor<3x1x1xf32>) -> tensor<1x5x1xf32>
  return %1 : tensor<1x5x1xf32>
}
