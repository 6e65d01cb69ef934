// RUN: sdy-opt %s -sdy-propagate-sharding-from-func-to-call | filecheck %s

sdy.mesh @mesh = <["x"=2, "y"=2]>

func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // A function result without a sharding counts as open.
  // CHECK: call @f(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>, <@mesh, [{?}]>]>}
  %0:2 = call @f(%arg0) : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  // Existing shardings of a call are kept.
  // CHECK: call @f(%0#1) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}]>, <@mesh, [{?}]>]>}
  %1:2 = call @f(%0#1) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}]>, <@mesh, [{?}]>]>}
      : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  // CHECK: call @g(%1#0) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = call @g(%1#0) : (tensor<8xf32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}

func.func private @f(%arg0: tensor<8xf32>)
    -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, tensor<8xf32>) {
  return %arg0, %arg0 : tensor<8xf32>, tensor<8xf32>
}

func.func private @g(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  return %arg0 : tensor<8xf32>
}
