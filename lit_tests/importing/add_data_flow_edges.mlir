// RUN: sdy-opt %s -sdy-add-data-flow-edges | filecheck %s

sdy.mesh @mesh = <["x"=2]>

// CHECK-LABEL: func.func @barrier
func.func @barrier(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: %[[B:.*]]:2 = stablehlo.optimization_barrier
  // CHECK-NEXT: %[[E0:.*]] = sdy.data_flow_edge %[[B]]#0 sharding=<@mesh, [{"x"}]> : tensor<8xf32>
  // CHECK-NEXT: %[[E1:.*]] = sdy.data_flow_edge %[[B]]#1 sharding=<@mesh, [{?}]> : tensor<8xf32>
  // CHECK-NEXT: stablehlo.add %[[E0]], %[[E1]]
  %0:2 = stablehlo.optimization_barrier {
      sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>, <@mesh, [{?}]>]>} %arg0, %arg1
      : tensor<8xf32>, tensor<8xf32>
  %1 = stablehlo.add %0#0, %0#1 : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// CHECK-LABEL: func.func @loop
func.func @loop(%arg0: tensor<8xf32>, %arg1: tensor<i1>) -> tensor<8xf32> {
  // CHECK:      %[[W:.*]]:2 = stablehlo.while
  // CHECK-NOT:  sdy.data_flow_edge
  // CHECK:      }
  // CHECK:      }
  // CHECK-NEXT: %[[E0:.*]] = sdy.data_flow_edge %[[W]]#0 : tensor<8xf32>
  // CHECK-NEXT: %[[E1:.*]] = sdy.data_flow_edge %[[W]]#1 : tensor<i1>
  // CHECK-NEXT: return %[[E0]]
  %0:2 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %arg1) : tensor<8xf32>, tensor<i1>
  cond {
    stablehlo.return %iterArg_0 : tensor<i1>
  } do {
    %1 = stablehlo.negate %iterArg : tensor<8xf32>
    stablehlo.return %1, %iterArg_0 : tensor<8xf32>, tensor<i1>
  }
  return %0#0 : tensor<8xf32>
}

// CHECK-LABEL: func.func @manual
func.func @manual(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: %[[M:.*]] = sdy.manual_computation(%arg0)
  // CHECK-SAME:     (%arg1: tensor<4xf32>) {
  // CHECK-NEXT:   %[[IN:.*]] = sdy.data_flow_edge %arg1 sharding=<@mesh, [{}]> : tensor<4xf32>
  // CHECK-NEXT:   sdy.return %[[IN]]
  // CHECK-NEXT: }
  // CHECK-NEXT: %[[OUT:.*]] = sdy.data_flow_edge %[[M]] sharding=<@mesh, [{"x"}]> : tensor<8xf32>
  // CHECK-NEXT: return %[[OUT]]
  %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>]
      manual_axes={"x"} (%arg1: tensor<4xf32>) {
    sdy.return %arg1 : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
