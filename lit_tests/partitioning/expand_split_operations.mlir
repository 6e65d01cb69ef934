// RUN: sdy-opt %s -split-input-file -sdy-expand-split-operations -sdy-propagation-pipeline | filecheck %s

sdy.mesh @mesh = <["x"=2]>

// CHECK-LABEL: func.func @main
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  // CHECK: %0 = call @scaled(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
  // CHECK-NEXT: stablehlo.sine %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
  %0 = stablehlo.composite "my.scaled" %arg0 {decomposition = @scaled} : (tensor<8xf32>) -> tensor<8xf32>
  %1 = stablehlo.sine %0 : tensor<8xf32>
  return %1 : tensor<8xf32>
}

func.func private @scaled(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.add %arg0, %arg0 : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// A composite that is not split stays, for compilers that have a kernel for it.

// CHECK-LABEL: func.func @main
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: stablehlo.composite "my.scaled" %arg0
  %0 = stablehlo.composite "my.scaled" %arg0 {decomposition = @scaled} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

func.func private @scaled(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.add %arg0, %arg0 : tensor<8xf32>
  return %0 : tensor<8xf32>
}
