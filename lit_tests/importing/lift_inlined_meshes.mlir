// RUN: sdy-opt %s -sdy-lift-inlined-meshes | filecheck %s

// Two names of one mesh are merged, and an inline mesh gets a name.

// CHECK:      sdy.mesh @a = <["x"=2]> {stablehlo.mesh = {axes = [{name = "x", size = 2 : i64}]}}
// CHECK-NEXT: sdy.mesh @mesh = <["y"=4]>
// CHECK-NEXT: sdy.mesh @mesh_0 = <["y"=2]>
// CHECK-NEXT: sdy.mesh @maximal_mesh_3 = <[], device_ids=[3]> {stablehlo.mesh = {axes = [], device_ids = dense<3> : tensor<1xi64>}}
// CHECK-NEXT: sdy.mesh @mesh_1 = <["z"=2]>
// CHECK-NOT:  sdy.mesh
sdy.mesh @a = <["x"=2]>
sdy.mesh @b = <["x"=2]>

// CHECK:      func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@a, [{"x"}]>},
// CHECK-SAME:                 %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>})
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@b, [{"x"}]>},
                %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<["y"=4]>, [{"y"}]>}) -> tensor<8xf32> {
  // CHECK: stablehlo.negate %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh_0, [{"y"}]>]>}
  %0 = stablehlo.negate %arg0 {sdy.sharding = #sdy.sharding_per_value<[<mesh<["y"=2]>, [{"y"}]>]>} : tensor<8xf32>
  // CHECK: stablehlo.negate %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}]>]>}
  %1 = stablehlo.negate %0 {sdy.sharding = #sdy.sharding_per_value<[<mesh<["y"=4]>, [{?}]>]>} : tensor<8xf32>
  // CHECK: stablehlo.negate %1 {sdy.sharding = #sdy.sharding_per_value<[<@maximal_mesh_3, []>]>}
  %2 = stablehlo.negate %1 {sdy.sharding = #sdy.sharding_per_value<[<mesh<[], device_ids=[3]>, []>]>} : tensor<8xf32>
  return %2 : tensor<8xf32>
}

func.func @replica_groups(%arg0: tensor<8xf32>) -> tensor<16xf32> {
  // CHECK: "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh_1, axes = [#stablehlo.axis_ref<name = "z">]>}>
  %0 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64,
      replica_groups = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "z", size = 2>]>, axes = [#stablehlo.axis_ref<name = "z">]>}>
      : (tensor<8xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
