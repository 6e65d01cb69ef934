// RUN: sdy-opt %s -sdy-expand-operations | filecheck %s

sdy.mesh @mesh = <["x"=2]>

// CHECK-LABEL: func.func @composite
func.func @composite(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: %0 = call @scaled(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  // CHECK-NEXT: %1 = sdy.sharding_constraint %0 <@mesh, [{"x"}]> : tensor<8xf32>
  // CHECK-NEXT: return %1
  %0 = stablehlo.composite "my.scaled" %arg0 {decomposition = @scaled,
      sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK-LABEL: func.func @with_a_rule
func.func @with_a_rule(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: stablehlo.composite
  %0 = stablehlo.composite "my.scaled" %arg0 {decomposition = @scaled,
      sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=8}>} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK-LABEL: func.func private @scaled
func.func private @scaled(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.add %arg0, %arg0 : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK-LABEL: func.func @training
func.func @training(%arg0: tensor<8x4xf32>, %arg1: tensor<4xf32>, %arg2: tensor<4xf32>)
    -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK: %[[SUM:.*]] = stablehlo.reduce(%arg0 {{.*}} applies stablehlo.add across dimensions = [0]
  // CHECK: %[[MEAN:.*]] = stablehlo.divide %[[SUM]]
  // CHECK: %[[CENTERED:.*]] = stablehlo.subtract %arg0
  // CHECK: %[[SQUARES:.*]] = stablehlo.multiply %[[CENTERED]], %[[CENTERED]]
  // CHECK: %[[SUM_OF_SQUARES:.*]] = stablehlo.reduce(%[[SQUARES]]
  // CHECK: %[[VARIANCE:.*]] = stablehlo.divide %[[SUM_OF_SQUARES]]
  // CHECK: %[[FACTOR:.*]] = stablehlo.divide %arg1
  // CHECK: %[[EACH:.*]] = stablehlo.broadcast_in_dim %[[FACTOR]], dims = [1]
  // CHECK: stablehlo.multiply %[[CENTERED]], %[[EACH]]
  // CHECK: stablehlo.broadcast_in_dim %arg2, dims = [1]
  // CHECK: %[[NORMALISED:.*]] = stablehlo.add
  // CHECK: return %[[NORMALISED]], %[[MEAN]], %[[VARIANCE]]
  %0:3 = "stablehlo.batch_norm_training"(%arg0, %arg1, %arg2) <{epsilon = 1.0 : f32, feature_index = 1 : i64}>
    : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#0, %0#1, %0#2 : tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>
}

// Narrow floats are summed in a wider type.
// CHECK-LABEL: func.func @gradient
func.func @gradient(%arg0: tensor<8x4xbf16>, %arg1: tensor<4xbf16>, %arg2: tensor<8x4xbf16>) -> tensor<4xbf16> {
  // CHECK: %[[GRADIENT:.*]] = stablehlo.convert %arg2 : (tensor<8x4xbf16>) -> tensor<8x4xf32>
  // CHECK: %[[SUM:.*]] = stablehlo.reduce(%[[GRADIENT]] init: %{{.*}}) applies stablehlo.add across dimensions = [0]
  // CHECK: %[[OFFSET:.*]] = stablehlo.convert %[[SUM]] : (tensor<4xf32>) -> tensor<4xbf16>
  // CHECK-NEXT: return %[[OFFSET]]
  %0:3 = "stablehlo.batch_norm_grad"(%arg0, %arg1, %arg1, %arg1, %arg2) <{epsilon = 1.0 : f32, feature_index = 1 : i64}>
    : (tensor<8x4xbf16>, tensor<4xbf16>, tensor<4xbf16>, tensor<4xbf16>, tensor<8x4xbf16>)
    -> (tensor<8x4xbf16>, tensor<4xbf16>, tensor<4xbf16>)
  return %0#2 : tensor<4xbf16>
}
