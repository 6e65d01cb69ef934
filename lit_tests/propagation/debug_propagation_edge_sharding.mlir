// RUN: sdy-opt %s -sdy-apply-sharding-constraints=debug-propagation-edge-sharding=true -sdy-basic-propagate=debug-propagation-edge-sharding=true -sdy-sink-data-flow-edges=sink-debug-propagation-edge-sharding=true | filecheck %s

sdy.mesh @mesh = <["x"=4, "y"=2]>

// Steps are numbered across passes, and the first function result has the edges of all returned values.

// CHECK: func.func @main
// CHECK-SAME: -> (tensor<8x8xf32> {sdy.propagation_edges = #sdy.propagation_edges<[{step-1 = [{"y" = operand-0 -> [result-0]}]}, {step-4 = [{"x" = operand-0 -> [result-0]}]}]>
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"x"}]>}, %arg1: tensor<2x4x8xf32>)
    -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  // CHECK: stablehlo.optimization_barrier
  // CHECK-SAME: sdy.block_arg_propagation_edges = []
  // CHECK-SAME: sdy.result_propagation_edges = [#sdy.propagation_edges<[{step-2 = [{"x" = operand-0 -> [result-0]}]}]>]
  %0 = stablehlo.optimization_barrier %arg0 : tensor<8x8xf32>
  %1 = sdy.data_flow_edge %0 : tensor<8x8xf32>
  // CHECK: stablehlo.reshape {{.*}}{sdy.propagation_edges = #sdy.propagation_edges<[{step-3 = [{"y" = result-0 -> [operand-0]}]}]>
  %2 = stablehlo.reshape %arg1 : (tensor<2x4x8xf32>) -> tensor<8x8xf32>
  // CHECK: sdy.sharding_constraint {{.*}}{sdy.propagation_edges = #sdy.propagation_edges<[{step-0 = [{"y" = result-0 -> [operand-0]}]}]>}
  %3 = sdy.sharding_constraint %2 <@mesh, [{"y"}, {}]> : tensor<8x8xf32>
  return %1, %3 : tensor<8x8xf32>, tensor<8x8xf32>
}
