// RUN: sdy-opt %s -sdy-resolve-single-device-sharding | filecheck %s
// RUN: sdy-opt %s -sdy-resolve-single-device-sharding='replica-count=2' | filecheck %s --check-prefix=REPLICA

sdy.mesh @mesh = <["x"=2]>
sdy.mesh @second = <[], device_ids=[1]>

// CHECK-LABEL: func.func @one_device
func.func @one_device(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK:       %0 = stablehlo.partition_id
  // REPLICA:     stablehlo.replica_id
  // CHECK:       %1 = stablehlo.convert %0
  // CHECK:       %c = stablehlo.constant dense<1> : tensor<i64>
  // CHECK:       %2 = stablehlo.compare EQ, %1, %c
  // CHECK:       %3 = "stablehlo.if"(%2) ({
  // CHECK-NEXT:    %5 = stablehlo.negate %arg0 : tensor<4xf32>
  // CHECK-NEXT:    stablehlo.return %5
  // CHECK-NEXT:  }, {
  // CHECK-NEXT:    %cst = stablehlo.constant dense<0.000000e+00> : tensor<4xf32>
  // CHECK-NEXT:    stablehlo.return %cst
  // CHECK:       %4 = sdy.all_reduce {"x"} %3 out_sharding=<@mesh, [{}]>
  // CHECK-NEXT:  return %4
  %0 = sdy.reshard %arg0 <@second, []> : tensor<4xf32>
  %1 = stablehlo.negate %0 {sdy.sharding = #sdy.sharding_per_value<[<@second, []>]>} : tensor<4xf32>
  %2 = sdy.reshard %1 <@mesh, [{}]> : tensor<4xf32>
  return %2 : tensor<4xf32>
}

// A region moves with its operation, and a token needs no communication.
// CHECK-LABEL: func.func @with_a_region
func.func @with_a_region(%arg0: tensor<4xf32>, %arg1: tensor<f32>) -> tensor<f32> {
  // CHECK:       "stablehlo.if"
  // CHECK-NEXT:    stablehlo.reduce(%arg0 init: %arg1) applies stablehlo.add
  // CHECK-NOT:     @second
  // CHECK-NOT:   sdy.all_reduce
  %0 = stablehlo.reduce(%arg0 init: %arg1) applies stablehlo.add across dimensions = [0]
    {sdy.sharding = #sdy.sharding_per_value<[<@second, []>]>} : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  // CHECK:       %[[CALL:.*]]:2 = "stablehlo.if"
  // CHECK:         stablehlo.create_token
  // CHECK:       sdy.all_reduce {"x"} %[[CALL]]#0
  // CHECK-NOT:   sdy.all_reduce
  // CHECK:       return
  %1:2 = stablehlo.custom_call @f(%0) {sdy.sharding = #sdy.sharding_per_value<[<@second, []>, <@mesh, []>]>}
    : (tensor<f32>) -> (tensor<f32>, !stablehlo.token)
  return %1#0 : tensor<f32>
}

// An operation without results, such as a printing callback, also runs on its device.
// CHECK-LABEL: func.func @without_results
func.func @without_results(%arg0: tensor<4xf32>) {
  // CHECK:       "stablehlo.if"(%{{.*}}) ({
  // CHECK-NEXT:    stablehlo.custom_call @print(%arg0) {has_side_effect = true} : (tensor<4xf32>) -> ()
  // CHECK-NEXT:    stablehlo.return
  // CHECK-NEXT:  }, {
  // CHECK-NEXT:    stablehlo.return
  // CHECK-NEXT:  }) : (tensor<i1>) -> ()
  stablehlo.custom_call @print(%arg0) {has_side_effect = true, sdy.sharding = #sdy.sharding_per_value<[<@second, []>]>}
    : (tensor<4xf32>) -> ()
  return
}

// The only result of an ordered callback without values is a token.
// CHECK-LABEL: func.func @token
func.func @token(%arg0: !stablehlo.token, %arg1: tensor<4xf32>) -> !stablehlo.token {
  // CHECK:       %[[TOKEN:.*]] = "stablehlo.if"(%{{.*}}) ({
  // CHECK-NEXT:    %[[CALL:.*]] = stablehlo.custom_call @print(%arg0, %arg1)
  // CHECK-NEXT:    stablehlo.return %[[CALL]]
  // CHECK-NEXT:  }, {
  // CHECK-NEXT:    %[[NEW:.*]] = stablehlo.create_token
  // CHECK-NEXT:    stablehlo.return %[[NEW]]
  // CHECK:       return %[[TOKEN]]
  %0 = stablehlo.custom_call @print(%arg0, %arg1)
    {has_side_effect = true, sdy.sharding = #sdy.sharding_per_value<[<@second, []>]>}
    : (!stablehlo.token, tensor<4xf32>) -> !stablehlo.token
  return %0 : !stablehlo.token
}

// A split operand is gathered first, and the result is sliced.
// CHECK-LABEL: func.func @parts
func.func @parts(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
    -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // CHECK:       %[[WHOLE:.*]] = sdy.all_gather [{"x"}] %arg0 out_sharding=<@mesh, [{}]>
  // CHECK-NEXT:  "stablehlo.if"
  // CHECK-NEXT:    stablehlo.negate %[[WHOLE]]
  %0 = sdy.reshard %arg0 <@second, []> : tensor<4xf32>
  // CHECK:       %[[RESULT:.*]] = sdy.all_reduce
  // CHECK-NEXT:  sdy.all_slice [{"x"}] %[[RESULT]] out_sharding=<@mesh, [{"x"}]>
  %1 = stablehlo.negate %0 {sdy.sharding = #sdy.sharding_per_value<[<@second, []>]>} : tensor<4xf32>
  %2 = sdy.reshard %1 <@mesh, [{"x"}]> : tensor<4xf32>
  return %2 : tensor<4xf32>
}

// A value that the same device produces and uses is not sent to the others.
// CHECK-LABEL: func.func @one_after_the_other
func.func @one_after_the_other(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK:       %[[FIRST:.*]] = "stablehlo.if"
  // CHECK-NOT:   sdy.all_reduce
  // CHECK:       %[[SECOND:.*]] = "stablehlo.if"
  // CHECK-NEXT:    stablehlo.cosine %[[FIRST]]
  // CHECK:       %[[RESULT:.*]] = sdy.all_reduce {"x"} %[[SECOND]]
  // CHECK-NEXT:  return %[[RESULT]]
  %0 = stablehlo.sine %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@second, []>]>} : tensor<4xf32>
  %1 = sdy.reshard %0 <@mesh, [{}]> : tensor<4xf32>
  %2 = sdy.reshard %1 <@second, []> : tensor<4xf32>
  %3 = stablehlo.cosine %2 {sdy.sharding = #sdy.sharding_per_value<[<@second, []>]>} : tensor<4xf32>
  %4 = sdy.reshard %3 <@mesh, [{}]> : tensor<4xf32>
  return %4 : tensor<4xf32>
}
