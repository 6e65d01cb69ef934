// RUN: xdsl-opt -p sdy-basic-propagate,sdy-close-shardings %s | filecheck %s

// xdsl-opt finds the dialects and the passes.

sdy.mesh @mesh = <["x"=2]>

// CHECK: func.func @main(%arg0: tensor<8xf32>
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  // CHECK: stablehlo.add %arg0, %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
  %0 = stablehlo.add %arg0, %arg0 : tensor<8xf32>
  return %0 : tensor<8xf32>
}
