// RUN: sdy-opt %s -split-input-file -verify-diagnostics -sdy-export-gspmd | filecheck %s

// CHECK: module attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32}
// CHECK-NOT: sdy.mesh
sdy.mesh @mesh = <["x"=2, "y"=4]>
sdy.mesh @listed = <["x"=8], device_ids=[0, 1, 2, 3, 4, 6, 5, 7]>
sdy.mesh @maximal_mesh_3 = <[], device_ids=[3]>

// CHECK-LABEL: func.func @main
// CHECK-SAME: %arg0: tensor<8x16xf32> {mhlo.sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"}
// CHECK-SAME: %arg1: tensor<8x16xf32> {mhlo.sharding = "{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}"}
// CHECK-SAME: %arg2: tensor<8x16xf32> {mhlo.sharding = "{devices=[2,1,4]<=[2,2,2]T(1,0,2) last_tile_dim_replicate}"}
// CHECK-SAME: %arg3: tensor<8xf32> {mhlo.sharding = "{devices=[8]0,1,2,3,4,6,5,7}"}
// CHECK-SAME: %arg4: tensor<8xf32> {mhlo.sharding = "{maximal device=3}"}
// CHECK-SAME: -> (tensor<8x16xf32> {mhlo.sharding = "{replicated}"})
func.func @main(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                %arg1: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", ?}p1, {?}]>},
                %arg2: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y":(1)2}, {}]>},
                %arg3: tensor<8xf32> {sdy.sharding = #sdy.sharding<@listed, [{"x"}]>},
                %arg4: tensor<8xf32> {sdy.sharding = #sdy.sharding<@maximal_mesh_3, []>})
    -> (tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  // CHECK: stablehlo.constant {mhlo.sharding = "{devices=[2,4]<=[8]}"} dense<1.0
  %0 = sdy.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>} dense<1.0> : tensor<8x16xf32>
  // CHECK: stablehlo.custom_call @Sharding(%arg0) {backend_config = "unspecified_dims=[1]", mhlo.sharding = "{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}"}
  %1 = sdy.sharding_constraint %arg0 <@mesh, [{"y"}, {?}]> : tensor<8x16xf32>
  // CHECK: stablehlo.custom_call @Sharding({{.*}}) {backend_config = "", mhlo.sharding = "{devices=[8,1]<=[8]}"}
  %2 = sdy.reshard %1 <@mesh, [{"x", "y"}, {}]> : tensor<8x16xf32>
  // CHECK: stablehlo.custom_call @Sharding({{.*}}) {backend_config = "", has_side_effect = true, mhlo.sharding = "{unknown shard_as 5}"}
  sdy.sharding_group %2 group_id=5 : tensor<8x16xf32>
  // CHECK: stablehlo.optimization_barrier {mhlo.sharding = "{{{{}}devices=[2,4]<=[8]}, {replicated}}"}
  %3:2 = stablehlo.optimization_barrier {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>, <@mesh, [{}]>]>} %2, %arg3 : tensor<8x16xf32>, tensor<8xf32>
  // CHECK: stablehlo.negate {{.*}} {mhlo.sharding = "{devices=[1,2,4]<=[8] last_tile_dims={unreduced, replicated}}"}
  %4 = stablehlo.negate %arg3 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}], unreduced={"x"}>]>} : tensor<8xf32>
  return %3#0 : tensor<8x16xf32>
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>

// CHECK-LABEL: func.func @manual
func.func @manual(%arg0: tensor<8x16xf32>) -> tensor<8x16xf32> {
  // CHECK-NEXT: %0 = stablehlo.custom_call @Sharding(%arg0) {backend_config = "", mhlo.sharding = "{devices=[2,4]<=[8]}"}
  // CHECK-NEXT: %1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {backend_config = "", mhlo.sharding = "{manual}"} : (tensor<8x16xf32>) -> tensor<4x4xf32>
  // CHECK-NEXT: %2 = stablehlo.negate %1 {mhlo.sharding = "{manual}"}
  // CHECK-NEXT: %3 = stablehlo.custom_call @Sharding(%2) {backend_config = "", mhlo.sharding = "{manual}"}
  // CHECK-NEXT: %4 = stablehlo.custom_call @SPMDShardToFullShape(%3) {backend_config = "", mhlo.sharding = "{devices=[2,4]<=[8]}"} : (tensor<4x4xf32>) -> tensor<8x16xf32>
  // CHECK-NEXT: return %4
  %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}, {"y"}]>] out_shardings=[<@mesh, [{"x"}, {"y"}]>] manual_axes={"x", "y"} (%arg1: tensor<4x4xf32>) {
    %1 = stablehlo.negate %arg1 : tensor<4x4xf32>
    sdy.return %1 : tensor<4x4xf32>
  } : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}

// CHECK-LABEL: func.func @partly_manual
func.func @partly_manual(%arg0: tensor<8x16xf32>) -> tensor<8x16xf32> {
  // CHECK-NEXT: %0 = stablehlo.custom_call @Sharding(%arg0) {backend_config = "unspecified_dims=[1]", mhlo.sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"}
  // CHECK-NEXT: %1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {backend_config = "unspecified_dims=[1]", mhlo.sharding = "{devices=[1,1,2,4]<=[8] last_tile_dims={manual, replicated}}"}
  // CHECK-NEXT: %2 = stablehlo.negate %1 {mhlo.sharding = "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dims={manual}}"}
  // CHECK-NEXT: %3 = stablehlo.custom_call @Sharding(%2) {{.*}} last_tile_dims={manual, replicated}}"}
  // CHECK-NEXT: %4 = stablehlo.custom_call @SPMDShardToFullShape(%3) {{.*}} mhlo.sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"}
  %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}, {?}]>] out_shardings=[<@mesh, [{"x"}, {?}]>] manual_axes={"x"} (%arg1: tensor<4x16xf32>) {
    %1 = stablehlo.negate %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"y"}]>]>} : tensor<4x16xf32>
    sdy.return %1 : tensor<4x16xf32>
  } : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}

// -----

sdy.mesh @mesh = <["x"=2]>

func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{has partial results to be reduced by max; GSPMD supports only sums}}
  %0 = stablehlo.negate %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}], unreduced=max{"x"}>]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{has no equivalent in GSPMD; run sdy-sink-data-flow-edges first}}
  %0 = sdy.data_flow_edge %arg0 : tensor<8xf32>
  return %0 : tensor<8xf32>
}
