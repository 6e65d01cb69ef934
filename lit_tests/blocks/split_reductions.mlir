// RUN: sdy-opt %s -sdy-split-reductions -split-input-file | filecheck %s
// RUN: sdy-opt %s -sdy-split-reductions=parts=4 -split-input-file | filecheck %s --check-prefix PARTS

sdy.mesh @mesh = <["x"=2, "y"=2]>

// The contracted dimension is split in two by "x". Without a sharding, the option determines the number of parts.
// CHECK-LABEL: func.func @contraction
// CHECK-NEXT:    %[[A:.*]] = stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {"x"}, {}]>]>} : (tensor<8x64xf32>) -> tensor<8x2x32xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.reshape %arg1 : (tensor<64x16xf32>) -> tensor<2x32x16xf32>
// CHECK-NEXT:    %[[STAGE:.*]] = stablehlo.dot_general %[[A]], %[[B]], batching_dims = [1] x [0], contracting_dims = [2] x [1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}, {}]>]>} : (tensor<8x2x32xf32>, tensor<2x32x16xf32>) -> tensor<2x8x16xf32>
// CHECK-NEXT:    %[[ZERO:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[SUM:.*]] = stablehlo.reduce(%[[STAGE]] init: %[[ZERO]]) applies stablehlo.add across dimensions = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {}]>]>}
// CHECK-NEXT:    return %[[SUM]]

// PARTS-LABEL: func.func @contraction
// PARTS:         stablehlo.dot_general {{.*}} : (tensor<8x4x16xf32>, tensor<4x16x16xf32>) -> tensor<4x8x16xf32>
// PARTS:         stablehlo.reduce
func.func @contraction(%a: tensor<8x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>},
                       %b: tensor<64x16xf32>) -> tensor<8x16xf32> {
  %0 = stablehlo.dot %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {}]>]>}
      : (tensor<8x64xf32>, tensor<64x16xf32>) -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2]>

// A maximum is associative too. Each of two split dimensions gets its own stage.
// CHECK-LABEL: func.func @maximum
// CHECK:         stablehlo.reshape {{.*}} -> tensor<2x4x6xf32>
// CHECK-NEXT:    stablehlo.reshape {{.*}} -> tensor<2x4x2x3xf32>
// CHECK-NEXT:    stablehlo.reduce({{.*}}) applies stablehlo.maximum across dimensions = [1, 3] {{.*}} -> tensor<2x2xf32>
// CHECK-NEXT:    stablehlo.reduce({{.*}}) applies stablehlo.maximum across dimensions = [1]
// CHECK-NEXT:    stablehlo.reduce({{.*}}) applies stablehlo.maximum across dimensions = [0]
func.func @maximum(%a: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<f32> {
  %0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %1 = stablehlo.reduce(%a init: %0) applies stablehlo.maximum across dimensions = [0, 1]
      : (tensor<8x6xf32>, tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

sdy.mesh @mesh = <["x"=4]>

// Unchanged: reductions of a dimension that is not sharded, or not evenly, and a reduction whose initial value is unknown,
// so that the identity element from which its parts would start is unknown too.
// CHECK-LABEL: func.func @whole
// CHECK-NOT:     reshape
// CHECK:         stablehlo.dot %arg0, %arg1
// CHECK-NEXT:    stablehlo.reduce(%arg2 init: %{{.*}}) applies stablehlo.add across dimensions = [0] : (tensor<6xf32>
// CHECK-NEXT:    stablehlo.reduce
// CHECK-SAME:    across dimensions = [0] : (tensor<8xf32>
func.func @whole(%a: tensor<8x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %b: tensor<64x16xf32>,
                 %c: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>},
                 %d: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
    -> (tensor<8x16xf32>, tensor<f32>, tensor<f32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = stablehlo.dot %a, %b : (tensor<8x64xf32>, tensor<64x16xf32>) -> tensor<8x16xf32>
  %1 = stablehlo.reduce(%c init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<6xf32>, tensor<f32>) -> tensor<f32>
  %2 = stablehlo.reduce(%d init: %zero) across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
   reducer(%x: tensor<f32>, %y: tensor<f32>) {
    %3 = stablehlo.add %x, %y : tensor<f32>
    %4 = stablehlo.subtract %3, %one : tensor<f32>
    stablehlo.return %4 : tensor<f32>
  }
  return %0, %1, %2 : tensor<8x16xf32>, tensor<f32>, tensor<f32>
}
