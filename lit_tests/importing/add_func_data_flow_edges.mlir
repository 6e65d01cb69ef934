// RUN: sdy-opt %s -sdy-add-func-data-flow-edges | filecheck %s

sdy.mesh @mesh = <["x"=2]>

// The arguments of the main function get no edges, since it has no calls.

// CHECK-LABEL: func.func @main(%arg0: tensor<8xf32>)
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: %[[CALL:.*]]:2 = call @f(%arg0)
  // CHECK-NEXT: %[[E0:.*]] = sdy.func_data_flow_edge %[[CALL]]#0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
  // CHECK-NEXT: %[[E1:.*]] = sdy.func_data_flow_edge %[[CALL]]#1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}]>]>} : tensor<8xf32>
  // CHECK-NEXT: stablehlo.add %[[E0]], %[[E1]]
  %0:2 = call @f(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>, <@mesh, [{?}]>]>}
      : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  %1 = stablehlo.add %0#0, %0#1 : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// CHECK-LABEL: func.func private @f
func.func private @f(%arg0: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK-NEXT: %[[E:.*]] = sdy.func_data_flow_edge %arg0 : tensor<8xf32>
  // CHECK-NEXT: return %[[E]], %[[E]]
  return %arg0, %arg0 : tensor<8xf32>, tensor<8xf32>
}
