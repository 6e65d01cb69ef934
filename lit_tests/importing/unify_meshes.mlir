// RUN: sdy-opt %s -sdy-unify-meshes -split-input-file | filecheck %s

// CHECK:      sdy.mesh @one = <["x"=4, "y"=2]>
// CHECK-NEXT: sdy.mesh @other = <["p"=2, "q"=4]>
// CHECK-NEXT: sdy.mesh @common_mesh = <["x:(1)2"=2, "x:(2)2"=2, "y"=2]>
sdy.mesh @one = <["x"=4, "y"=2]>
sdy.mesh @other = <["p"=2, "q"=4]>

// CHECK: %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@common_mesh, [{"x:(1)2", "x:(2)2", ?}p1, {}], replicated={"y"}>}
func.func @main(
    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@one, [{"x", ?}p1, {}], replicated={"y"}>}) -> tensor<8x8xf32> {
  // CHECK: sdy.sharding_constraint %arg0 <@common_mesh, [{"x:(2)2", "y"}, {"x:(1)2"}]>
  %0 = sdy.sharding_constraint %arg0 <@other, [{"q"}, {"p"}]> : tensor<8x8xf32>
  // CHECK:      sdy.manual_computation(%0) in_shardings=[<@common_mesh, [{"x:(2)2", "y"}, {?}]>]
  // CHECK-SAME: out_shardings=[<@common_mesh, [{"x:(2)2", "y"}, {?}]>] manual_axes={"x:(2)2", "y"}
  %1 = sdy.manual_computation(%0) in_shardings=[<@other, [{"q"}, {?}]>] out_shardings=[<@other, [{"q"}, {?}]>]
      manual_axes={"q"} (%arg1: tensor<2x8xf32>) {
    sdy.return %arg1 : tensor<2x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// -----

// A mesh that refines all others is the common mesh, even with another device order.

// CHECK:     sdy.mesh @other = <["t"=2, "s"=4], device_ids=[0, 2, 4, 6, 1, 3, 5, 7]>
// CHECK-NOT: sdy.mesh
sdy.mesh @line = <["a"=8]>
sdy.mesh @one = <["x"=4, "y"=2]>
sdy.mesh @other = <["t"=2, "s"=4], device_ids=[0, 2, 4, 6, 1, 3, 5, 7]>

// CHECK: %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@one, [{"x", "y"}, {}]>}
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@line, [{"a"}, {}]>}) -> tensor<8x8xf32> {
  // CHECK: sdy.sharding_constraint %arg0 <@one, [{}, {"x", "y"}]>
  %0 = sdy.sharding_constraint %arg0 <@one, [{}, {"x", "y"}]> : tensor<8x8xf32>
  // CHECK: sdy.sharding_constraint %0 <@one, [{"x"}, {"y"}]>
  %1 = sdy.sharding_constraint %0 <@other, [{"s"}, {"t"}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// -----

// Shardings without an equivalent on the common mesh are left open.

sdy.mesh @one = <["x"=2, "y"=3]>
sdy.mesh @other = <["a"=3, "b"=2]>

// CHECK: %arg0: tensor<6x6xf32> {sdy.sharding = #sdy.sharding<@one, [{"x"}, {"y"}]>}
func.func @main(%arg0: tensor<6x6xf32> {sdy.sharding = #sdy.sharding<@one, [{"x"}, {"y"}]>}) -> tensor<6x6xf32> {
  // CHECK: sdy.sharding_constraint %arg0 <@one, [{"x", "y"}, {}]>
  %0 = sdy.sharding_constraint %arg0 <@other, [{"a", "b"}, {}]> : tensor<6x6xf32>
  // CHECK: sdy.sharding_constraint %0 <@one, [{?}, {}]>
  %1 = sdy.sharding_constraint %0 <@other, [{"a"}, {}]> : tensor<6x6xf32>
  return %1 : tensor<6x6xf32>
}
