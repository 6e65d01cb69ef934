// RUN: sdy-opt %s -sdy-insert-explicit-reshards=enable-full-version=true | filecheck %s

sdy.mesh @mesh = <["x"=2]>

// Partial results are combined by the reduction of the body.
// CHECK-LABEL: func.func @maximum
// CHECK:         %[[PARTIAL:.*]] = linalg.reduce ins(%arg0:
// CHECK:         sdy.all_reduce max {"x"} %[[PARTIAL]] out_sharding=
func.func @maximum(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}, %arg1: tensor<8xf32>)
    -> tensor<8xf32> {
  %0 = linalg.reduce ins(%arg0 : tensor<8x4xf32>) outs(%arg1 : tensor<8xf32>) dimensions = [1]
  (%a: f32, %b: f32) {
    %1 = arith.maximumf %a, %b : f32
    linalg.yield %1 : f32
  }
  return %0 : tensor<8xf32>
}

// CHECK-LABEL: func.func @sum_from_zero
// CHECK:         %[[PARTIAL:.*]] = linalg.matmul
// CHECK:         sdy.all_reduce {"x"} %[[PARTIAL]] out_sharding=
func.func @sum_from_zero(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
                         %arg1: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x8xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x8xf32>) -> tensor<8x8xf32>
  %0 = linalg.matmul ins(%arg0, %arg1 : tensor<8x4xf32>, tensor<4x8xf32>) outs(%zeros : tensor<8x8xf32>)
      -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// The initial value of the sum is recognized as zero through a reshard.
// CHECK-LABEL: func.func @sum_from_resharded_zero
// CHECK:         %[[ZEROS:.*]] = linalg.fill
// CHECK:         %[[WHOLE:.*]] = sdy.reshard %[[ZEROS]] <@mesh, [{}, {}]>
// CHECK:         %[[PARTIAL:.*]] = linalg.matmul ins(%arg0, %arg1 : {{.*}}) outs(%[[WHOLE]] :
// CHECK:         sdy.all_reduce {"x"} %[[PARTIAL]] out_sharding=
func.func @sum_from_resharded_zero(%arg0: tensor<8x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
                                   %arg1: tensor<64x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> tensor<8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x8xf32>
  %zeros = linalg.fill {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}
      ins(%zero : f32) outs(%empty : tensor<8x8xf32>) -> tensor<8x8xf32>
  %0 = linalg.matmul ins(%arg0, %arg1 : tensor<8x64xf32>, tensor<64x8xf32>) outs(%zeros : tensor<8x8xf32>)
      -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// Each device would add the initial value of the sum, so the operation is replicated.
// CHECK-LABEL: func.func @sum_from_anything
// CHECK:         %[[LHS:.*]] = sdy.reshard %arg0 <@mesh, [{}, {}]>
// CHECK:         %[[RHS:.*]] = sdy.reshard %arg1 <@mesh, [{}, {}]>
// CHECK:         linalg.matmul ins(%[[LHS]], %[[RHS]] :
// CHECK-NOT:     sdy.all_reduce
func.func @sum_from_anything(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
                             %arg1: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                             %arg2: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = linalg.matmul ins(%arg0, %arg1 : tensor<8x4xf32>, tensor<4x8xf32>) outs(%arg2 : tensor<8x8xf32>)
      -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
