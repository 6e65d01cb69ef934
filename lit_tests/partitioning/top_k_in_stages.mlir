// RUN: sdy-opt %s -sdy-top-k-in-stages -split-input-file | filecheck %s

sdy.mesh @mesh = <["x"=4]>

// CHECK-LABEL: func.func @exact
// CHECK-NEXT:    %[[CUT:.*]] = stablehlo.reshape %arg0 {{.*}}[{}, {"x"}, {}]{{.*}} -> tensor<8x4x256xf32>
// CHECK-NEXT:    %[[VALUES:.*]], %[[PLACES:.*]] = chlo.top_k(%[[CUT]], k = 16) {{.*}}[{}, {"x"}, {}]
// CHECK:         %[[INDICES:.*]] = stablehlo.add %[[PLACES]]
// CHECK:         %[[ALL_INDICES:.*]] = stablehlo.reshape %[[INDICES]] {{.*}}[{}, {"x"}]{{.*}} -> tensor<8x64xi32>
// CHECK:         %[[ALL:.*]] = stablehlo.reshape %[[VALUES]] {{.*}}[{}, {"x"}]{{.*}} -> tensor<8x64xf32>
// CHECK:         %[[LARGEST:.*]], %[[AMONG:.*]] = chlo.top_k(%[[ALL]], k = 16)
// CHECK:         %[[TAKEN:.*]] = "stablehlo.gather"(%[[ALL_INDICES]], %[[AMONG]])
// CHECK:         return %[[LARGEST]], %[[TAKEN]]
func.func @exact(%arg0: tensor<8x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> (tensor<8x16xf32>, tensor<8x16xi32>) {
  %values, %indices = chlo.top_k(%arg0, k = 16) : tensor<8x1024xf32> -> (tensor<8x16xf32>, tensor<8x16xi32>)
  return %values, %indices : tensor<8x16xf32>, tensor<8x16xi32>
}

// Unchanged: the candidates and their indices would be larger than the operand.
// CHECK-LABEL: func.func @too_many_candidates
// CHECK-NEXT:    chlo.top_k(%arg0, k = 128)
func.func @too_many_candidates(%arg0: tensor<8x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> tensor<8x128xf32> {
  %values, %indices = chlo.top_k(%arg0, k = 128) : tensor<8x1024xf32> -> (tensor<8x128xf32>, tensor<8x128xi32>)
  return %values : tensor<8x128xf32>
}

// CHECK-LABEL: func.func @uneven
// CHECK-NEXT:    chlo.top_k(%arg0, k = 1)
func.func @uneven(%arg0: tensor<1023xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<1xf32> {
  %values, %indices = chlo.top_k(%arg0, k = 1) : tensor<1023xf32> -> (tensor<1xf32>, tensor<1xi32>)
  return %values : tensor<1xf32>
}

// -----

sdy.mesh @mesh = <["x"=4]>

// CHECK-LABEL: func.func @approximate
// CHECK:         %[[PARTS:.*]]:2 = stablehlo.custom_call @ApproxTopK({{.*}}reduction_dim = 1 : i64, reduction_input_size_override = 1024 : i64, top_k = 2 : i64}{{.*}}(tensor<4x256x8xf32>, tensor<4x256x8xi32>, tensor<f32>, tensor<i32>) -> (tensor<4x2x8xf32>, tensor<4x2x8xi32>)
// CHECK:         "stablehlo.sort"({{.*}}dimension = 0 : i64, is_stable = true
// CHECK:           stablehlo.compare LT
// CHECK-COUNT-2: stablehlo.slice {{.*}} [0:2, 0:8]
func.func @approximate(%arg0: tensor<1024x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<2x8xf32>, tensor<2x8xi32>) {
  %0 = stablehlo.iota dim = 0 : tensor<1024x8xi32>
  %none = stablehlo.constant dense<-1> : tensor<i32>
  %last = stablehlo.constant dense<0x7F800000> : tensor<f32>
  %1:2 = stablehlo.custom_call @ApproxTopK(%arg0, %0, %last, %none) {called_computations = [@less], mhlo.backend_config = {aggregate_to_topk = true, is_fallback = true, recall_target = 0.95 : f32, reduction_dim = 0 : i64, reduction_input_size_override = -1 : i64, top_k = 2 : i64}} : (tensor<1024x8xf32>, tensor<1024x8xi32>, tensor<f32>, tensor<i32>) -> (tensor<2x8xf32>, tensor<2x8xi32>)
  return %1#0, %1#1 : tensor<2x8xf32>, tensor<2x8xi32>
}
func.func private @less(%arg0: tensor<f32>, %arg1: tensor<f32>, %arg2: tensor<i32>, %arg3: tensor<i32>) -> tensor<i1> {
  %0 = stablehlo.compare LT, %arg0, %arg1 : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %0 : tensor<i1>
}
