// RUN: sdy-opt %s -sdy-renumber-devices -split-input-file | filecheck %s

// CHECK: sdy.mesh @mesh = <["x"=3]>
sdy.mesh @mesh = <["x"=3], device_ids=[2, 0, 1]>

// CHECK-LABEL: func.func @main
// CHECK-NEXT:    stablehlo.partition_id
// CHECK-NEXT:    %[[PLACE:.*]] = stablehlo.partition_id
// CHECK-NEXT:    %[[INDEX:.*]] = stablehlo.convert %[[PLACE]]
// CHECK-NEXT:    %[[IDS:.*]] = stablehlo.constant dense<[2, 0, 1]>
// CHECK-NEXT:    %[[ID:.*]] = stablehlo.dynamic_slice %[[IDS]], %[[INDEX]], sizes = [1]
// CHECK-NEXT:    %[[SCALAR:.*]] = stablehlo.reshape %[[ID]]
// CHECK-NEXT:    %[[DEVICE:.*]] = stablehlo.convert %[[SCALAR]]
// CHECK-NEXT:    %[[MOVED:.*]] = "stablehlo.collective_permute"(%arg0) <{source_target_pairs = dense<[[0, 1], [1, 2]]>
// CHECK-NEXT:    return %[[MOVED]], %[[DEVICE]]
func.func @main(%arg0: tensor<8xf32>) -> (tensor<8xf32>, tensor<ui32>) {
  %0 = stablehlo.partition_id : tensor<ui32>
  %1 = "stablehlo.collective_permute"(%arg0) <{source_target_pairs = dense<[[2, 0], [0, 1]]> : tensor<2x2xi64>}> : (tensor<8xf32>) -> tensor<8xf32>
  return %1, %0 : tensor<8xf32>, tensor<ui32>
}

// -----

// Unchanged: the mesh has the default order.
sdy.mesh @mesh = <["x"=2]>

// CHECK-LABEL: func.func @default_order
// CHECK-NEXT:    %[[DEVICE:.*]] = stablehlo.partition_id
// CHECK-NEXT:    return %[[DEVICE]]
func.func @default_order() -> tensor<ui32> {
  %0 = stablehlo.partition_id : tensor<ui32>
  return %0 : tensor<ui32>
}
