// RUN: sdy-opt %s -sdy-remove-unused-results | filecheck %s

sdy.mesh @mesh = <["x"=8]>

// Only the keys are used, which are compared.
// CHECK-LABEL: func.func @sort
func.func @sort(%arg0: tensor<8x4xf32>, %arg1: tensor<8x4xi32>) -> tensor<8x4xf32> {
  // CHECK-NEXT:  %[[SORT:.*]] = "stablehlo.sort"(%arg0) <{dimension = 1 : i64, is_stable = true}> ({
  // CHECK-NEXT:  ^bb0(%[[A:.*]]: tensor<f32>, %[[B:.*]]: tensor<f32>):
  // CHECK-NEXT:    %[[LESS:.*]] = stablehlo.compare LT, %[[A]], %[[B]]
  // CHECK-NEXT:    stablehlo.return %[[LESS]]
  // CHECK-NEXT:  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK-NEXT:  return %[[SORT]]
  %0:2 = "stablehlo.sort"(%arg0, %arg1) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %1 = stablehlo.add %c, %d : tensor<i32>
    %2 = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>, <@mesh, [{}, {"x"}]>]>} : (tensor<8x4xf32>, tensor<8x4xi32>) -> (tensor<8x4xf32>, tensor<8x4xi32>)
  return %0#0 : tensor<8x4xf32>
}

// The keys are compared, so that they stay; a collective and its operand without uses do not.
// CHECK-LABEL: func.func @argsort
func.func @argsort(%arg0: tensor<8x4xf32>, %arg1: tensor<8x4xi32>) -> tensor<8x4xi32> {
  // CHECK-NEXT:  %[[SORT:.*]]:2 = "stablehlo.sort"(%arg0, %arg1)
  // CHECK:       }) : (tensor<8x4xf32>, tensor<8x4xi32>) -> (tensor<8x4xf32>, tensor<8x4xi32>)
  // CHECK-NEXT:  return %[[SORT]]#1
  %0:2 = "stablehlo.sort"(%arg0, %arg1) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %2 = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  }) : (tensor<8x4xf32>, tensor<8x4xi32>) -> (tensor<8x4xf32>, tensor<8x4xi32>)
  %3 = stablehlo.negate %0#0 : tensor<8x4xf32>
  %4 = "stablehlo.all_gather"(%3) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> : (tensor<8x4xf32>) -> tensor<16x4xf32>
  return %0#1 : tensor<8x4xi32>
}

// The sum does not depend on the maximum.
// CHECK-LABEL: func.func @reduce
func.func @reduce(%arg0: tensor<8x4xf32>, %arg1: tensor<8x4xi32>, %arg2: tensor<f32>, %arg3: tensor<i32>) -> tensor<8xf32> {
  // CHECK-NEXT:  %[[SUM:.*]] = stablehlo.reduce(%arg0 init: %arg2) applies stablehlo.add across dimensions = [1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>
  // CHECK-NEXT:  return %[[SUM]]
  %0:2 = stablehlo.reduce(%arg0 init: %arg2), (%arg1 init: %arg3) across dimensions = [1] : (tensor<8x4xf32>, tensor<8x4xi32>, tensor<f32>, tensor<i32>) -> (tensor<8xf32>, tensor<8xi32>)
   reducer(%a: tensor<f32>, %b: tensor<f32>) (%c: tensor<i32>, %d: tensor<i32>)  {
    %1 = stablehlo.add %a, %b : tensor<f32>
    %2 = stablehlo.maximum %c, %d : tensor<i32>
    stablehlo.return %1, %2 : tensor<f32>, tensor<i32>
  }
  return %0#0 : tensor<8xf32>
}

// The index depends on the maximum.
// CHECK-LABEL: func.func @argmax
func.func @argmax(%arg0: tensor<8x4xf32>, %arg1: tensor<8x4xi32>, %arg2: tensor<f32>, %arg3: tensor<i32>) -> tensor<8xi32> {
  // CHECK-NEXT:  %[[BOTH:.*]]:2 = stablehlo.reduce(%arg0 init: %arg2), (%arg1 init: %arg3)
  // CHECK:       return %[[BOTH]]#1
  %0:2 = stablehlo.reduce(%arg0 init: %arg2), (%arg1 init: %arg3) across dimensions = [1] : (tensor<8x4xf32>, tensor<8x4xi32>, tensor<f32>, tensor<i32>) -> (tensor<8xf32>, tensor<8xi32>)
   reducer(%a: tensor<f32>, %b: tensor<f32>) (%c: tensor<i32>, %d: tensor<i32>)  {
    %1 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %2 = stablehlo.select %1, %a, %b : tensor<i1>, tensor<f32>
    %3 = stablehlo.select %1, %c, %d : tensor<i1>, tensor<i32>
    stablehlo.return %2, %3 : tensor<f32>, tensor<i32>
  }
  return %0#1 : tensor<8xi32>
}
