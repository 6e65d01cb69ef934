// RUN: sdy-opt %s -sdy-prepare-pipeline | filecheck %s

// CHECK: sdy.mesh @[[MESH:.*]] = <["[[AXIS:.*]]"=2]>

// CHECK-LABEL: func.func @main
// CHECK-SAME: %arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@[[MESH]], [{"[[AXIS]]"}]>}
func.func @main(%arg0: tensor<8xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}) -> tensor<8xf32> {
  // CHECK-NEXT: %0 = call @scaled(%arg0)
  // CHECK-NEXT: return %0
  %0 = stablehlo.composite "my.scaled" %arg0 {decomposition = @scaled} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK: func.func private @scaled
func.func private @scaled(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.add %arg0, %arg0 : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK-NOT: @unused
func.func private @unused(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  return %arg0 : tensor<8xf32>
}
