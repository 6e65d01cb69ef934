// RUN: sdy-opt %s -sdy-drop-sharding-and-mesh | filecheck %s

// CHECK-NOT: sdy.
sdy.mesh @mesh = <["x"=2]>

// CHECK: func.func @main(%arg0: tensor<8xf32> {mhlo.tag = "kept"}) -> tensor<8xf32> {
// CHECK-NOT: sdy.
func.func @main(%arg0: tensor<8xf32> {mhlo.tag = "kept", sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
    -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  %0 = stablehlo.negate %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}
