// RUN: sdy-opt %s -sdy-sharding-group-import | filecheck %s

// CHECK-LABEL: func.func @main
func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>, %arg2: tensor<8xf32>, %arg3: tensor<4xf32>) {
  // CHECK-NEXT: sdy.sharding_group %arg0 group_id=0
  // CHECK-NEXT: sdy.sharding_group %arg1 group_id=0
  // CHECK-NEXT: sdy.sharding_group %arg2 group_id=0
  // CHECK-NEXT: sdy.sharding_group %arg3 group_id=1
  // CHECK-NEXT: return
  sdy.sharding_group %arg0 group_id=12 : tensor<8xf32>
  sdy.sharding_group %arg1 group_id=12 : tensor<8xf32>
  sdy.sharding_group %arg1 group_id=7 : tensor<8xf32>
  sdy.sharding_group %arg1 group_id=7 : tensor<8xf32>
  sdy.sharding_group %arg2 group_id=7 : tensor<8xf32>
  sdy.sharding_group %arg3 group_id=3 : tensor<4xf32>
  return
}
