// RUN: sdy-opt %s | filecheck %s
// RUN: sdy-opt %s --mlir-print-op-generic | sdy-opt | filecheck %s

// CHECK:      sdy.mesh @empty = <[]>
// CHECK-NEXT: sdy.mesh @device = <[], device_ids=[3]>
// CHECK-NEXT: sdy.mesh @mesh = <["x"=4, "y"=2]>
// CHECK-NEXT: sdy.mesh @turned = <["x"=4], device_ids=[3, 2, 1, 0]>
// CHECK-NEXT: sdy.mesh @"two words" = <["an axis"=2]>
sdy.mesh @empty = <[]>
sdy.mesh @device = <[], device_ids=[3]>
// Device ids in the default order are dropped.
sdy.mesh @mesh = <["x"=4, "y"=2], device_ids=[0, 1, 2, 3, 4, 5, 6, 7]>
sdy.mesh @turned = <["x"=4], device_ids=[3, 2, 1, 0]>
sdy.mesh @"two words" = <["an axis"=2]>

// CHECK-LABEL: func.func @arguments
// CHECK-SAME:  %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2, ?}p1, {"y"}], replicated={"x":(2)2}>}
// CHECK-SAME:  %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}], unreduced={"x", "y"}>}
// CHECK-SAME:  %arg2: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced=max{"x"}>}
// CHECK-SAME:  %arg3: tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<["x"=4], device_ids=[3, 2, 1, 0]>, [{"x"}]>}
// CHECK-SAME:  %arg4: tensor<8xf32> {sdy.sharding = #sdy.sharding<@"two words", [{"an axis", ?}]>}
// CHECK-SAME:  -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@device, []>})
func.func @arguments(
    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2, ?}p1, {"y"}], replicated={"x":(2)2}>},
    %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}], unreduced=sum{"x", "y"}>},
    %arg2: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced=max{"x"}>},
    %arg3: tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<["x"=4], device_ids=[3, 2, 1, 0]>, [{"x"}]>},
    %arg4: tensor<8xf32> {sdy.sharding = #sdy.sharding<@"two words", [{"an axis", ?}]>})
    -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@device, []>}) {
  return %arg1 : tensor<8xf32>
}

// CHECK-LABEL: func.func @constraints
func.func @constraints(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: %0 = sdy.sharding_constraint %arg0 <@mesh, [{"x", ?}]> : tensor<8xf32>
  %0 = sdy.sharding_constraint %arg0 <@mesh, [{"x", ?}]> : tensor<8xf32>
  // CHECK-NEXT: %1 = sdy.reshard %0 <@mesh, [{"y"}]> {note = "moved"} : tensor<8xf32>
  %1 = sdy.reshard %0 <@mesh, [{"y"}]> {note = "moved"} : tensor<8xf32>
  // CHECK-NEXT: sdy.sharding_group %1 group_id=7 : tensor<8xf32>
  sdy.sharding_group %1 group_id=7 : tensor<8xf32>
  // CHECK-NEXT: %2 = sdy.propagation_barrier %1 allowed_direction=FORWARD : tensor<8xf32>
  %2 = sdy.propagation_barrier %1 allowed_direction=FORWARD : tensor<8xf32>
  // CHECK-NEXT: %3 = sdy.constant dense<1.000000e+00> : tensor<8xf32>
  %3 = sdy.constant dense<1.0> : tensor<8xf32>
  // CHECK-NEXT: %4 = stablehlo.add %2, %3 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
  %4 = stablehlo.add %2, %3 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
  return %4 : tensor<8xf32>
}
