// RUN: sdy-opt %s -sdy-narrow-collectives | filecheck %s

// CHECK-LABEL: func.func @to_narrower
func.func @to_narrower(%arg0: tensor<2x8xf32>) -> tensor<8x8xbf16> {
  // CHECK-NEXT: %[[CAST:.*]] = stablehlo.convert %arg0 : (tensor<2x8xf32>) -> tensor<2x8xbf16>
  // CHECK-NEXT: %[[WHOLE:.*]] = "stablehlo.all_gather"(%[[CAST]]) {{.*}} : (tensor<2x8xbf16>) -> tensor<8x8xbf16>
  // CHECK-NEXT: %[[RESULT:.*]] = stablehlo.transpose %[[WHOLE]], dims = [1, 0] : (tensor<8x8xbf16>) -> tensor<8x8xbf16>
  // CHECK-NEXT: return %[[RESULT]]
  %0 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> : (tensor<2x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = stablehlo.convert %1 : (tensor<8x8xf32>) -> tensor<8x8xbf16>
  return %2 : tensor<8x8xbf16>
}

// CHECK-LABEL: func.func @to_wider
func.func @to_wider(%arg0: tensor<8x8xi8>) -> (tensor<1x8xf32>, tensor<8x8xf32>) {
  // CHECK-NEXT: %[[USED:.*]] = stablehlo.convert %arg0
  // CHECK-NEXT: %[[ROW:.*]] = stablehlo.slice %arg0 [7:8, 0:8] : (tensor<8x8xi8>) -> tensor<1x8xi8>
  // CHECK-NEXT: %[[SENT:.*]] = "stablehlo.collective_permute"(%[[ROW]]) {{.*}} : (tensor<1x8xi8>) -> tensor<1x8xi8>
  // CHECK-NEXT: %[[CAST:.*]] = stablehlo.convert %[[SENT]] : (tensor<1x8xi8>) -> tensor<1x8xf32>
  // CHECK-NEXT: return %[[CAST]], %[[USED]]
  %0 = stablehlo.convert %arg0 : (tensor<8x8xi8>) -> tensor<8x8xf32>
  %1 = stablehlo.slice %0 [7:8, 0:8] : (tensor<8x8xf32>) -> tensor<1x8xf32>
  %2 = "stablehlo.collective_permute"(%1) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<1x8xf32>) -> tensor<1x8xf32>
  return %2, %0 : tensor<1x8xf32>, tensor<8x8xf32>
}

// The other operands of the operations between are cast, too.
// CHECK-LABEL: func.func @halo
func.func @halo(%arg0: tensor<4xf32>, %arg1: tensor<i1>) -> tensor<6xbf16> {
  // CHECK: %[[SENT:.*]] = "stablehlo.collective_permute"(%{{.*}}) {{.*}} : (tensor<1xbf16>) -> tensor<1xbf16>
  // CHECK-NEXT: %[[OWN:.*]] = stablehlo.convert %arg0 : (tensor<4xf32>) -> tensor<4xbf16>
  // CHECK-NEXT: %[[BOTH:.*]] = stablehlo.concatenate %[[SENT]], %[[OWN]], dim = 0
  // CHECK-NEXT: %[[ZERO:.*]] = stablehlo.convert %{{.*}} : (tensor<f32>) -> tensor<bf16>
  // CHECK-NEXT: %[[PADDED:.*]] = stablehlo.pad %[[BOTH]], %[[ZERO]], {{.*}} : (tensor<5xbf16>, tensor<bf16>) -> tensor<6xbf16>
  // CHECK: %[[RESULT:.*]] = stablehlo.select %arg1, %[[PADDED]], %{{.*}} : tensor<i1>, tensor<6xbf16>
  // CHECK-NEXT: return %[[RESULT]]
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.constant dense<0.0> : tensor<6xf32>
  %0 = stablehlo.slice %arg0 [3:4] : (tensor<4xf32>) -> tensor<1xf32>
  %1 = "stablehlo.collective_permute"(%0) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<1xf32>) -> tensor<1xf32>
  %2 = stablehlo.concatenate %1, %arg0, dim = 0 : (tensor<1xf32>, tensor<4xf32>) -> tensor<5xf32>
  %3 = stablehlo.pad %2, %zero, low = [0], high = [1], interior = [0] : (tensor<5xf32>, tensor<f32>) -> tensor<6xf32>
  %4 = stablehlo.select %arg1, %3, %zeros : tensor<i1>, tensor<6xf32>
  %5 = stablehlo.convert %4 : (tensor<6xf32>) -> tensor<6xbf16>
  return %5 : tensor<6xbf16>
}

// Casts pass several collectives, and leave a loop that does not change their operand.
// CHECK-LABEL: func.func @several
func.func @several(%arg0: tensor<2x2xi1>, %arg1: tensor<2xf32>, %arg2: tensor<i32>) -> (tensor<4x4xf32>, tensor<4xbf16>) {
  // CHECK: "stablehlo.all_gather"(%arg0) {{.*}} -> tensor<4x2xi1>
  // CHECK-NEXT: "stablehlo.all_gather"(%{{.*}}) {{.*}} -> tensor<4x4xi1>
  // CHECK-NEXT: stablehlo.convert %{{.*}} : (tensor<4x4xi1>) -> tensor<4x4xf32>
  // CHECK-NEXT: stablehlo.convert %arg1 : (tensor<2xf32>) -> tensor<2xbf16>
  // CHECK-NEXT: "stablehlo.all_gather"(%{{.*}}) {{.*}} -> tensor<4xbf16>
  // CHECK: stablehlo.while
  // CHECK-NOT: convert
  %0 = stablehlo.convert %arg0 : (tensor<2x2xi1>) -> tensor<2x2xf32>
  %1 = "stablehlo.all_gather"(%0) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>}> : (tensor<2x2xf32>) -> tensor<4x2xf32>
  %2 = "stablehlo.all_gather"(%1) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>}> : (tensor<4x2xf32>) -> tensor<4x4xf32>
  %3 = "stablehlo.all_gather"(%arg1) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>}> : (tensor<2xf32>) -> tensor<4xf32>
  %begin = stablehlo.constant dense<0.0> : tensor<4xbf16>
  %4:2 = stablehlo.while(%i = %arg2, %x = %begin) : tensor<i32>, tensor<4xbf16>
  cond {
    %5 = stablehlo.compare LT, %i, %arg2 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %5 : tensor<i1>
  } do {
    %5 = stablehlo.convert %3 : (tensor<4xf32>) -> tensor<4xbf16>
    %6 = stablehlo.add %x, %5 : tensor<4xbf16>
    stablehlo.return %i, %6 : tensor<i32>, tensor<4xbf16>
  }
  return %2, %4#1 : tensor<4x4xf32>, tensor<4xbf16>
}

// Collectives with another use, with casts to two types, and with casts to less than a byte are unchanged.
// CHECK-LABEL: func.func @other_uses
func.func @other_uses(%arg0: tensor<2xf32>, %arg1: tensor<2xf32>, %arg2: tensor<2xi32>) -> (tensor<8xf32>, tensor<8xbf16>, tensor<8xbf16>, tensor<8xf16>, tensor<8xi4>) {
  // CHECK-COUNT-2: {{all_gather.*-> tensor<8xf32>}}
  // CHECK: {{all_gather.*-> tensor<8xi32>}}
  %0 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> : (tensor<2xf32>) -> tensor<8xf32>
  %1 = stablehlo.convert %0 : (tensor<8xf32>) -> tensor<8xbf16>
  %2 = "stablehlo.all_gather"(%arg1) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> : (tensor<2xf32>) -> tensor<8xf32>
  %3 = stablehlo.convert %2 : (tensor<8xf32>) -> tensor<8xbf16>
  %4 = stablehlo.convert %2 : (tensor<8xf32>) -> tensor<8xf16>
  %5 = "stablehlo.all_gather"(%arg2) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> : (tensor<2xi32>) -> tensor<8xi32>
  %6 = stablehlo.convert %5 : (tensor<8xi32>) -> tensor<8xi4>
  return %0, %1, %3, %4, %6 : tensor<8xf32>, tensor<8xbf16>, tensor<8xbf16>, tensor<8xf16>, tensor<8xi4>
}

// A collective whose result is an index, and one behind an optimization barrier, are unchanged, as are reductions.
// CHECK-LABEL: func.func @no_movement
func.func @no_movement(%arg0: tensor<i32>, %arg1: tensor<8xf32>, %arg2: tensor<2xf32>) -> (tensor<2xbf16>, tensor<8xbf16>, tensor<2xbf16>) {
  // CHECK: {{collective_permute.*-> tensor<i32>}}
  // CHECK: {{all_gather.*-> tensor<8xf32>}}
  // CHECK: {{\(tensor<2xf32>\) -> tensor<2xf32>}}
  // CHECK: stablehlo.convert {{.*}} -> tensor<2xbf16>
  %0 = "stablehlo.collective_permute"(%arg0) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<i32>) -> tensor<i32>
  %1 = stablehlo.dynamic_slice %arg1, %0, sizes = [2] : (tensor<8xf32>, tensor<i32>) -> tensor<2xf32>
  %2 = stablehlo.convert %1 : (tensor<2xf32>) -> tensor<2xbf16>
  %3 = "stablehlo.all_gather"(%arg2) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> : (tensor<2xf32>) -> tensor<8xf32>
  %4 = stablehlo.optimization_barrier %3 : tensor<8xf32>
  %5 = stablehlo.convert %4 : (tensor<8xf32>) -> tensor<8xbf16>
  %6 = "stablehlo.all_reduce"(%arg2) <{replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %8 = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %8 : tensor<f32>
  }) : (tensor<2xf32>) -> tensor<2xf32>
  %7 = stablehlo.convert %6 : (tensor<2xf32>) -> tensor<2xbf16>
  return %2, %5, %7 : tensor<2xbf16>, tensor<8xbf16>, tensor<2xbf16>
}
