// RUN: sdy-opt %s -sdy-insert-explicit-reshards='enable-full-version=true' | filecheck %s
// RUN: sdy-opt %s -sdy-insert-explicit-reshards | filecheck %s --check-prefix=MINIMAL

sdy.mesh @mesh = <["x"=4, "y"=2]>

// Both operands shard a dimension of the result along "x"; the larger one keeps it.
// CHECK-LABEL:   func.func @matmul
// MINIMAL-LABEL: func.func @matmul
func.func @matmul(
    %arg0: tensor<8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
    %arg1: tensor<32x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>})
    -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  // CHECK-NEXT: %[[RHS:.*]] = sdy.reshard %arg1 <@mesh, [{"y"}, {}]>
  // CHECK-NEXT: %[[DOT:.*]] = stablehlo.dot %arg0, %[[RHS]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}
  // CHECK-NEXT: %[[SUM:.*]] = sdy.all_reduce {"y"} %[[DOT]] out_sharding=<@mesh, [{"x"}, {}]>
  // CHECK-NEXT: return %[[SUM]]
  // MINIMAL-NEXT: stablehlo.dot %arg0, %arg1
  // MINIMAL-NEXT: return
  %0 = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}
      : (tensor<8x32xf32>, tensor<32x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// Two of three tensors have the same sharding.
// CHECK-LABEL: func.func @elementwise
func.func @elementwise(
    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) {
  // CHECK-NEXT: %[[SECOND:.*]] = sdy.reshard %arg1 <@mesh, [{"x"}, {}]>
  // CHECK-NEXT: %[[ADD:.*]] = stablehlo.add %arg0, %[[SECOND]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}
  // CHECK-NEXT: %[[RESULT:.*]] = sdy.reshard %[[ADD]] <@mesh, [{"y"}, {}]>
  // CHECK-NEXT: return %[[RESULT]]
  %0 = stablehlo.add %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// Partial maxima are combined by an all-reduce with a maximum.
// CHECK-LABEL: func.func @maximum
func.func @maximum(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}, %arg1: tensor<f32>)
    -> tensor<8xf32> {
  // CHECK-NEXT: %[[MAX:.*]] = stablehlo.reduce
  // CHECK-NEXT: %[[ALL:.*]] = sdy.all_reduce max {"x"} %[[MAX]] out_sharding=<@mesh, [{}]>
  // CHECK-NEXT: return %[[ALL]]
  %0 = stablehlo.reduce(%arg0 init: %arg1) applies stablehlo.maximum across dimensions = [1]
      : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// Partial products cannot be combined, so the dimension is replicated.
// CHECK-LABEL: func.func @product
func.func @product(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}, %arg1: tensor<f32>)
    -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}) {
  // CHECK-NEXT: %[[WHOLE:.*]] = sdy.reshard %arg0 <@mesh, [{"y"}, {}]>
  // CHECK-NEXT: %[[PRODUCT:.*]] = stablehlo.reduce(%[[WHOLE]] init: %arg1) applies stablehlo.multiply
  // CHECK-NEXT: return %[[PRODUCT]]
  %0 = stablehlo.reduce(%arg0 init: %arg1) applies stablehlo.multiply across dimensions = [1]
      {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}]>]>} : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// The result is smaller than the operand with "y" in another dimension, so the result is resharded.
// CHECK-LABEL:   func.func @smaller_result
// MINIMAL-LABEL: func.func @smaller_result
func.func @smaller_result(
    %arg0: tensor<4x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
    %arg1: tensor<32x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>})
    -> (tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) {
  // MINIMAL-NEXT: %[[DOT:.*]] = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"y"}]>]>}
  // MINIMAL-NEXT: %[[RESULT:.*]] = sdy.reshard %[[DOT]] <@mesh, [{}, {"x"}]>
  // MINIMAL-NEXT: return %[[RESULT]]
  %0 = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>}
      : (tensor<4x32xf32>, tensor<32x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// An unreduced value is reduced before a user that is not unreduced, even without the full version.
// CHECK-LABEL:   func.func @unreduced
// MINIMAL-LABEL: func.func @unreduced
func.func @unreduced(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}], unreduced={"y"}>})
    -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>},
        tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced={"x", "y"}>}) {
  // CHECK-NEXT: %[[SUM:.*]] = sdy.all_reduce {"y"} %arg0 out_sharding=<@mesh, [{"x"}]>
  // CHECK-NEXT: %[[PADDED:.*]] = sdy.sharded_to_unreduced [{"x"}] %arg0 out_sharding=<@mesh, [{}], unreduced={"x", "y"}>
  // CHECK-NEXT: return %[[SUM]], %[[PADDED]]
  // MINIMAL-NEXT: %[[SUM:.*]] = sdy.all_reduce {"y"} %arg0 out_sharding=<@mesh, [{"x"}]>
  // MINIMAL-NEXT: %[[PADDED:.*]] = sdy.sharded_to_unreduced [{"x"}] %arg0
  // MINIMAL-NEXT: return %[[SUM]], %[[PADDED]]
  return %arg0, %arg0 : tensor<8xf32>, tensor<8xf32>
}

// The operands of a call are resharded to the argument shardings of the function.
// CHECK-LABEL:   func.func @call
// MINIMAL-LABEL: func.func @call
func.func @call(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  // CHECK-NEXT:   %[[ARG:.*]] = sdy.reshard %arg0 <@mesh, [{"y"}]>
  // CHECK-NEXT:   call @callee(%[[ARG]])
  // MINIMAL-NEXT: %[[ARG:.*]] = sdy.reshard %arg0 <@mesh, [{"y"}]>
  // MINIMAL-NEXT: call @callee(%[[ARG]])
  %0 = call @callee(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

func.func private @callee(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}) -> tensor<8xf32> {
  return %arg0 : tensor<8xf32>
}

sdy.mesh @first = <[], device_ids=[0]>

// A token stays on its device even if no tensor of the operation is on it.
// CHECK-LABEL: func.func @tokens
func.func @tokens(%arg0: !stablehlo.token, %arg1: tensor<8xf32>) -> (!stablehlo.token, tensor<8xf32>) {
  // CHECK:      stablehlo.custom_call @print({{.*}}) {has_side_effect = true, sdy.sharding = #sdy.sharding_per_value<[<@first, []>]>}
  %0 = stablehlo.custom_call @print(%arg0, %arg1)
    {has_side_effect = true, sdy.sharding = #sdy.sharding_per_value<[<@first, []>]>}
    : (!stablehlo.token, tensor<8xf32>) -> !stablehlo.token
  // CHECK:      stablehlo.custom_call @read({{.*}}) {has_side_effect = true, sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>, <@first, []>]>}
  %1:2 = stablehlo.custom_call @read(%0)
    {has_side_effect = true, sdy.sharding = #sdy.sharding_per_value<[<@first, []>, <@first, []>]>}
    : (!stablehlo.token) -> (!stablehlo.token, tensor<8xf32>)
  return %1#0, %1#1 : !stablehlo.token, tensor<8xf32>
}
