// RUN: sdy-opt %s -sdy-remove-sharding-groups | filecheck %s

// CHECK-LABEL: func.func @main
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: stablehlo.negate
  // CHECK-NEXT: return
  sdy.sharding_group %arg0 group_id=0 : tensor<8xf32>
  %0 = stablehlo.negate %arg0 : tensor<8xf32>
  sdy.sharding_group %0 group_id=0 : tensor<8xf32>
  return %0 : tensor<8xf32>
}
