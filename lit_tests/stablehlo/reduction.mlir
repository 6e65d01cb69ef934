// RUN: sdy-opt %s | filecheck %s

// CHECK-LABEL: func.func @reduces(%arg0: tensor<4x8xf32>, %arg1: tensor<4x8xi1>, %arg2: tensor<f32>, %arg3: tensor<i1>) {
func.func @reduces(%arg0: tensor<4x8xf32>, %arg1: tensor<4x8xi1>, %arg2: tensor<f32>, %arg3: tensor<i1>) {
  // CHECK: stablehlo.reduce(%arg1 init: %arg3) applies stablehlo.or across dimensions = [0, 1] {mhlo.x = 1 : i32} : (tensor<4x8xi1>, tensor<i1>) -> tensor<i1>
  %0 = stablehlo.reduce(%arg1 init: %arg3) applies stablehlo.or across dimensions = [0, 1] {mhlo.x = 1 : i32} : (tensor<4x8xi1>, tensor<i1>) -> tensor<i1>
  // CHECK: stablehlo.reduce(%arg0 init: %arg2), (%arg1 init: %arg3) across dimensions = [1] : (tensor<4x8xf32>, tensor<4x8xi1>, tensor<f32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xi1>)
  %1:2 = stablehlo.reduce(%arg0 init: %arg2), (%arg1 init: %arg3) across dimensions = [1] : (tensor<4x8xf32>, tensor<4x8xi1>, tensor<f32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xi1>)
   reducer(%arg4: tensor<f32>, %arg6: tensor<f32>) (%arg5: tensor<i1>, %arg7: tensor<i1>)  {
    // CHECK: stablehlo.subtract %arg4, %arg6 : tensor<f32>
    %3 = stablehlo.subtract %arg4, %arg6 : tensor<f32>
    // CHECK: stablehlo.return %3, %arg5 : tensor<f32>, tensor<i1>
    stablehlo.return %3, %arg5 : tensor<f32>, tensor<i1>
  }
  // CHECK: stablehlo.reduce(%arg0 init: %arg2) applies stablehlo.add across dimensions = [] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %2 = stablehlo.reduce(%arg0 init: %arg2) applies stablehlo.add across dimensions = [] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  return
}

// CHECK-LABEL: func.func @map(%arg0: tensor<4xf32>) -> tensor<4xf32> {
func.func @map(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: "stablehlo.map"(%arg0, %arg0) <{dimensions = array<i64: 0>}> ({
  %0 = "stablehlo.map"(%arg0, %arg0) <{dimensions = array<i64: 0>}> ({
  ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
    // CHECK: stablehlo.add %arg1, %arg2 : tensor<f32>
    %1 = stablehlo.add %arg1, %arg2 : tensor<f32>
    // CHECK: stablehlo.return %1 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
