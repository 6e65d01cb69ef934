// RUN: sdy-opt %s -sdy-sink-data-flow-edges | filecheck %s

sdy.mesh @mesh = <["x"=2, "y"=2]>

// CHECK-LABEL: func.func @barrier
func.func @barrier(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>) -> tensor<8xf32> {
  // An edge without a sharding gets an open one if another edge has one.
  // CHECK-NEXT: %[[B:.*]]:2 = stablehlo.optimization_barrier {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>, <@mesh, [{?}]>]>} %arg0, %arg1
  // CHECK-NEXT: stablehlo.add %[[B]]#0, %[[B]]#1
  %0:2 = stablehlo.optimization_barrier %arg0, %arg1 : tensor<8xf32>, tensor<8xf32>
  %1 = sdy.data_flow_edge %0#0 sharding=<@mesh, [{"x"}]> : tensor<8xf32>
  %2 = sdy.data_flow_edge %0#1 : tensor<8xf32>
  %3 = stablehlo.add %1, %2 : tensor<8xf32>
  return %3 : tensor<8xf32>
}

// CHECK-LABEL: func.func @manual
func.func @manual(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: %[[M:.*]] = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x", "y"}]>] out_shardings=[<@mesh, [{"x", ?}]>] manual_axes={"x"} (%arg1: tensor<4xf32>) {
  // CHECK-NEXT:   sdy.return %arg1
  // CHECK-NEXT: }
  // CHECK-NEXT: return %[[M]]
  %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x", ?}]>]
      manual_axes={"x"} (%arg1: tensor<4xf32>) {
    %2 = sdy.data_flow_edge %arg1 sharding=<@mesh, [{"y"}]> : tensor<4xf32>
    sdy.return %2 : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  %1 = sdy.data_flow_edge %0 sharding=<@mesh, [{"x", ?}]> : tensor<8xf32>
  return %1 : tensor<8xf32>
}
