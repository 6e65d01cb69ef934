// RUN: sdy-opt %s -sdy-fold-single-elements | filecheck %s

sdy.mesh @mesh = <["x"=8]>

// CHECK-LABEL: func.func @top_k
func.func @top_k(%arg0: tensor<8x1xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<8x1xf32>, tensor<8x1xi32>) {
  // CHECK-NEXT:  %[[ZEROS:.*]] = sdy.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} dense<0> : tensor<8x1xi32>
  // CHECK-NEXT:  %[[VALUES:.*]], %{{.*}} = chlo.top_k(%arg0, k = 1)
  // CHECK-NEXT:  return %[[VALUES]], %[[ZEROS]]
  %0, %1 = chlo.top_k(%arg0, k = 1) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>, <@mesh, [{}, {"x"}]>]>} : tensor<8x1xf32> -> (tensor<8x1xf32>, tensor<8x1xi32>)
  return %0, %1 : tensor<8x1xf32>, tensor<8x1xi32>
}

// The sort has no uses left, and is removed as dead code later.
// CHECK-LABEL: func.func @sort
func.func @sort(%arg0: tensor<8x1xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x1xf32> {
  // CHECK:       %[[ELEMENTS:.*]] = sdy.reshard %arg0 <@mesh, [{}, {"x"}]> : tensor<8x1xf32>
  // CHECK:       return %[[ELEMENTS]]
  %0 = "stablehlo.sort"(%arg0) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : (tensor<8x1xf32>) -> tensor<8x1xf32>
  return %0 : tensor<8x1xf32>
}

// CHECK-LABEL: func.func @argmax
func.func @argmax(%arg0: tensor<8x1xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<8xf32>, tensor<8xi32>) {
  // CHECK:       %[[ZEROS:.*]] = sdy.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} dense<0> : tensor<8xi32>
  // CHECK-NEXT:  %[[LARGEST:.*]]:2 = stablehlo.reduce
  // CHECK:       return %[[LARGEST]]#0, %[[ZEROS]]
  %places = stablehlo.iota dim = 1 : tensor<8x1xi32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = "stablehlo.reduce"(%arg0, %places, %least, %zero) <{dimensions = array<i64: 1>}> ({
  ^bb0(%a: tensor<f32>, %i: tensor<i32>, %b: tensor<f32>, %j: tensor<i32>):
    %c = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %d = stablehlo.select %c, %a, %b : tensor<i1>, tensor<f32>
    %e = stablehlo.select %c, %i, %j : tensor<i1>, tensor<i32>
    stablehlo.return %d, %e : tensor<f32>, tensor<i32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>, <@mesh, [{}]>]>} : (tensor<8x1xf32>, tensor<8x1xi32>, tensor<f32>, tensor<i32>) -> (tensor<8xf32>, tensor<8xi32>)
  return %0#0, %0#1 : tensor<8xf32>, tensor<8xi32>
}

// Unchanged: the index is that of the larger of two elements.
// CHECK-LABEL: func.func @two_elements
func.func @two_elements(%arg0: tensor<8x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x1xi32> {
  // CHECK-NEXT:  %{{.*}}, %[[INDICES:.*]] = chlo.top_k
  // CHECK-NEXT:  return %[[INDICES]]
  %0, %1 = chlo.top_k(%arg0, k = 1) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>, <@mesh, [{}, {"x"}]>]>} : tensor<8x2xf32> -> (tensor<8x1xf32>, tensor<8x1xi32>)
  return %1 : tensor<8x1xi32>
}

// CHECK-LABEL: func.func @reverses
func.func @reverses(%arg0: tensor<8x1xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> (tensor<8x1xf32>, tensor<8x1xf32>) {
  // CHECK:       %[[REVERSED:.*]] = stablehlo.reverse %arg0, dims = [0, 1]
  // CHECK-NEXT:  return %arg0, %[[REVERSED]]
  %0 = stablehlo.reverse %arg0, dims = [1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : tensor<8x1xf32>
  %1 = stablehlo.reverse %arg0, dims = [0, 1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : tensor<8x1xf32>
  return %0, %1 : tensor<8x1xf32>, tensor<8x1xf32>
}
