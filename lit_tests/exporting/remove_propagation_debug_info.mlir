// RUN: sdy-opt %s -sdy-remove-propagation-debug-info | filecheck %s

sdy.mesh @mesh = <["x"=2]>

// CHECK: func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
func.func @main(%arg0: tensor<8xf32> {sdy.sharding_origins = {x = "input: 0"}})
    -> (tensor<8xf32> {sdy.sharding_origins = {x = "output: 0"}}) {
  // CHECK-NEXT: stablehlo.negate %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
  %0 = stablehlo.negate %arg0 {
      sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>,
      sdy.sharding_origins = [{x = "input: 0"}],
      sdy.propagation_edges = #sdy.propagation_edges<[{step-0 = [{"x" = operand-0 -> [result-0]}]}]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}
