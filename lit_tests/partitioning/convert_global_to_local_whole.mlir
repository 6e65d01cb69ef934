// RUN: sdy-opt %s -verify-diagnostics -sdy-convert-global-to-local='compute-whole=true' | filecheck %s

sdy.mesh @mesh = <["x"=2]>

// An operation that a device cannot compute from its shards is replicated.
// CHECK-LABEL: func.func @reverse
func.func @reverse(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
    -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // CHECK:       %0 = "stablehlo.all_gather"(%arg0)
  // CHECK:       %1 = stablehlo.reverse %0
  // CHECK-SAME:    tensor<4xf32>
  // CHECK:       stablehlo.dynamic_slice %1
  // CHECK-SAME:    -> tensor<2xf32>
  // expected-warning @+1 {{'stablehlo.reverse' op is replicated on every device: a device would need data of other devices}}
  %0 = stablehlo.reverse %arg0, dims = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
