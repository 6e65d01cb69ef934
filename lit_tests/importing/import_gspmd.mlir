// RUN: sdy-opt %s -split-input-file -verify-diagnostics -sdy-import-gspmd | filecheck %s

// One mesh whose axes refine all shardings, in any device order.
// CHECK: sdy.mesh @mesh = <["axis_0"=2, "axis_1"=4]>
// CHECK-LABEL: func.func @main
// CHECK-SAME: %arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"axis_0"}, {}]>}
// CHECK-SAME: %arg1: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"axis_1", "axis_0"}, {}]>}
// CHECK-SAME: %arg2: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}
// CHECK-SAME: -> (tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"axis_0"}, {"axis_1"}]>})
// expected-remark@+1 {{are imported onto the mesh <["axis_0"=2, "axis_1"=4]>}}
module attributes {mhlo.num_partitions = 8 : i32} {
  func.func @main(%arg0: tensor<8x16xf32> {mhlo.sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"},
                  %arg1: tensor<8x16xf32> {mhlo.sharding = "{devices=[8,1]<=[2,4]T(1,0)}"},
                  %arg2: tensor<8xf32> {mhlo.sharding = "{replicated}"})
      -> (tensor<8x16xf32> {mhlo.sharding = "{devices=[2,4]0,1,2,3,4,5,6,7 metadata={op_name=\"f\"}}"}) {
    // CHECK: %0 = stablehlo.add %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"axis_1"}, {"axis_0"}]>]>}
    %0 = stablehlo.add %arg0, %arg1 {mhlo.sharding = "{devices=[4,2]<=[2,4]T(1,0)}"} : tensor<8x16xf32>
    // CHECK-NEXT: %1 = sdy.sharding_constraint %0 <@mesh, [{?}, {"axis_1"}]>
    %1 = stablehlo.custom_call @Sharding(%0) {backend_config = "unspecified_dims=[0]", mhlo.sharding = "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}"} : (tensor<8x16xf32>) -> tensor<8x16xf32>
    // CHECK-NEXT: sdy.sharding_group %1 group_id=3
    // CHECK-NEXT: return %1
    %2 = stablehlo.custom_call @Sharding(%1) {has_side_effect = true, mhlo.sharding = "{unknown shard_as 3}"} : (tensor<8x16xf32>) -> tensor<8x16xf32>
    return %2 : tensor<8x16xf32>
  }
}

// -----

// A custom device order, a single device, several results.
// CHECK: sdy.mesh @mesh = <["axis_0"=2, "axis_1"=2], device_ids=[3, 2, 1, 0]>
// CHECK: sdy.mesh @maximal_mesh_2 = <[], device_ids=[2]>
// CHECK-LABEL: func.func @main
// CHECK-SAME: %arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"axis_0", "axis_1"}]>}
// CHECK-SAME: %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@maximal_mesh_2, []>}
// CHECK: stablehlo.optimization_barrier {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"axis_0"}]>, <@mesh, [{?}]>]>}
// expected-remark@+1 {{device_ids=[3, 2, 1, 0]>}}
module {
  func.func @main(%arg0: tensor<8xf32> {mhlo.sharding = "{devices=[4]3,2,1,0}"},
                  %arg1: tensor<8xf32> {mhlo.sharding = "{maximal device=2}"}) -> tensor<8xf32> {
    %0:2 = stablehlo.optimization_barrier {mhlo.sharding = "{{devices=[2,2]3,2,1,0 last_tile_dim_replicate}, {unknown}}"} %arg0, %arg1 : tensor<8xf32>, tensor<8xf32>
    return %0#0 : tensor<8xf32>
  }
}

// -----

// Tiles of 2 x 3 and of 3 x 2 devices have no common mesh.
// CHECK: sdy.mesh @mesh = <["axis_0"=2, "axis_1"=3]>
// CHECK: sdy.mesh @mesh_0 = <["axis_0"=3, "axis_1"=2]>
// CHECK-LABEL: func.func @main
// CHECK-SAME: #sdy.sharding<@mesh, [{"axis_0"}, {"axis_1"}]>
// CHECK-SAME: #sdy.sharding<@mesh_0, [{"axis_0"}, {"axis_1"}]>
// expected-remark@+1 {{are imported onto the mesh}}
module {
  func.func @main(%arg0: tensor<6x6xf32> {mhlo.sharding = "{devices=[2,3]<=[6]}"},
                  %arg1: tensor<6x6xf32> {mhlo.sharding = "{devices=[3,2]<=[6]}"}) {
    return
  }
}

// -----

// An existing mesh is used.
// CHECK: sdy.mesh @given = <["x"=8]>
// CHECK-NEXT: func.func @on_given_mesh
// CHECK-SAME: #sdy.sharding<@given, [{"x":(2)4}]>
// expected-remark@+1 {{are imported onto the mesh <["x"=8]>}}
module {
  sdy.mesh @given = <["x"=8]>
  func.func @on_given_mesh(%arg0: tensor<8xf32> {mhlo.sharding = "{devices=[4,2]<=[2,4]T(1,0) last_tile_dim_replicate}"}) {
    return
  }
}

// -----

// A manual region, as JAX lowered shard_map for GSPMD.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"axis_0", ?}, {?}]>] out_shardings=[<@mesh, [{?}, {?}]>] manual_axes={"axis_0"} (%arg1: tensor<4x16xf32>) {
// CHECK-NEXT:   %1 = "stablehlo.all_reduce"(%arg1)
// CHECK:        sdy.return %1
// CHECK-NEXT: } : (tensor<8x16xf32>) -> tensor<4x16xf32>
// CHECK-NEXT: return %0
// CHECK-NOT: @body
// expected-remark@+1 {{are imported onto the mesh}}
module {
  func.func @main(%arg0: tensor<8x16xf32>) -> tensor<4x16xf32> {
    %0 = stablehlo.custom_call @Sharding(%arg0) {backend_config = "unspecified_dims=[0,1]", mhlo.sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"} : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {backend_config = "unspecified_dims=[0,1]", mhlo.sharding = "{devices=[1,1,2,4]<=[8] last_tile_dims={manual, replicated}}"} : (tensor<8x16xf32>) -> tensor<4x16xf32>
    %2 = call @body(%1) : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %3 = stablehlo.custom_call @Sharding(%2) {backend_config = "unspecified_dims=[0,1]", mhlo.sharding = "{devices=[1,1,2,4]<=[8] last_tile_dims={manual, replicated}}"} : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %4 = stablehlo.custom_call @SPMDShardToFullShape(%3) {backend_config = "unspecified_dims=[0,1]", mhlo.sharding = "{replicated}"} : (tensor<4x16xf32>) -> tensor<4x16xf32>
    return %4 : tensor<4x16xf32>
  }
  func.func private @body(%arg0: tensor<4x16xf32>) -> tensor<4x16xf32> {
    %0 = "stablehlo.all_reduce"(%arg0) <{replica_groups = dense<[[0, 4], [1, 5], [2, 6], [3, 7]]> : tensor<4x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %1 = stablehlo.add %arg1, %arg2 : tensor<f32>
      %2 = stablehlo.custom_call @Sharding(%1) {mhlo.sharding = "{devices=[2,4]<=[8] last_tile_dims={manual, replicated}}"} : (tensor<f32>) -> tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<4x16xf32>) -> tensor<4x16xf32>
    return %0 : tensor<4x16xf32>
  }
}

// -----

// SDY meshes and shardings in XLA's frontend attributes.
// CHECK: sdy.mesh @mesh = <["a"=2, "b"=4]>
// CHECK-LABEL: func.func @main
// CHECK-SAME: %arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b", ?}p1]>}
// CHECK-SAME: -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>})
// CHECK-NEXT: %0 = sdy.sharding_constraint %arg0 <@mesh, [{"a"}]>
// CHECK-NEXT: %1 = stablehlo.negate %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"b"}]>]>}
// CHECK-NEXT: return %1
module attributes {mhlo.frontend_attributes = {xla.sdy.meshes = "{mesh = #sdy.mesh<[\"a\"=2, \"b\"=4]>}"}} {
  func.func @main(%arg0: tensor<8xf32> {mhlo.frontend_attributes = {xla.sdy.sharding = "#sdy.sharding<@mesh, [{\22b\22, ?}p1]>"}}) -> tensor<8xf32> {
    %0 = stablehlo.custom_call @Sharding(%arg0) {mhlo.frontend_attributes = {xla.sdy.sharding = "#sdy.sharding_per_value<[<@mesh, [{\22a\22}]>]>"}} : (tensor<8xf32>) -> tensor<8xf32>
    %1 = stablehlo.negate %0 {mhlo.frontend_attributes = {xla.sdy.sharding = "#sdy.sharding_per_value<[<@mesh, [{\\\22b\\\22}]>]>"}} : tensor<8xf32>
    %2 = stablehlo.custom_call @local_xla.sdy.FuncResultSharding(%1) {mhlo.frontend_attributes = {xla.sdy.sharding = "#sdy.sharding_per_value<[<@mesh, [{\22a\22}]>]>"}} : (tensor<8xf32>) -> tensor<8xf32>
    return %2 : tensor<8xf32>
  }
}

// -----

// Other frontend attributes; they take precedence over mhlo.sharding.
// CHECK: sdy.mesh @mesh = <["a"=2, "b"=4]>
// CHECK-LABEL: func.func @main
// CHECK-SAME: %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b", ?}, {}]>}
// CHECK-NEXT: sdy.sharding_group %arg0 group_id=21
// CHECK-NEXT: %0 = sdy.propagation_barrier %arg0 allowed_direction=BACKWARD
// CHECK-NEXT: %1 = stablehlo.custom_call @f(%0) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8}, custom>}
// CHECK-NEXT: return %1
module attributes {mhlo.frontend_attributes = {xla.sdy.meshes = "{mesh = #sdy.mesh<[\"a\"=2, \"b\"=4]>}"}} {
  func.func @main(%arg0: tensor<8x8xf32> {mhlo.frontend_attributes = {xla.sdy.sharding = "#sdy.sharding<@mesh, [{\22b\22, ?}, {}]>"}, mhlo.sharding = "{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}"}) -> tensor<8x8xf32> {
    stablehlo.custom_call @xla.sdy.ShardingGroup(%arg0) {has_side_effect = true, mhlo.frontend_attributes = {xla.sdy.sharding_group_id = "21 : i64"}} : (tensor<8x8xf32>) -> ()
    %0 = stablehlo.custom_call @xla.sdy.PropagationBarrier(%arg0) {mhlo.frontend_attributes = {xla.sdy.allowed_direction = "2 : i32"}} : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %1 = stablehlo.custom_call @f(%0) {mhlo.frontend_attributes = {xla.sdy.sharding_rule = "#sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8}, custom>"}} : (tensor<8x8xf32>) -> tensor<8x8xf32>
    return %1 : tensor<8x8xf32>
  }
}

// -----

// A manual computation that XLA outlined, nested in another one: attributes on the call, as of February 2025.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"a"}, {}]>] out_shardings=[<@mesh, [{"a"}, {}]>] manual_axes={"a"} (%arg1: tensor<4x8xf32>) {
// CHECK-NEXT:   %1 = sdy.manual_computation(%arg1) in_shardings=[<@mesh, [{}, {"b"}]>] out_shardings=[<@mesh, [{}, {"b"}]>] manual_axes={"b"} (%arg2: tensor<4x2xf32>) {
// CHECK-NEXT:     %2 = stablehlo.negate %arg2
// CHECK-NEXT:     sdy.return %2
// CHECK-NEXT:   } : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:   sdy.return %1
// CHECK-NEXT: } : (tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT: return %0
// CHECK-NOT: manual_computation_body
module attributes {mhlo.frontend_attributes = {xla.sdy.meshes = "{mesh = #sdy.mesh<[\"a\"=2, \"b\"=4]>}"}} {
  func.func @main(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %0 = stablehlo.custom_call @xla.sdy.GlobalToLocalShape(%arg0) : (tensor<8x8xf32>) -> tensor<4x8xf32>
    %1 = call @xla.sdy.manual_computation_body(%0) {mhlo.frontend_attributes = {xla.sdy.in_shardings = "#sdy.sharding_per_value<[<@mesh, [{\22a\22}, {}]>]>", xla.sdy.manual_axes = "#sdy<manual_axes{\22a\22}>", xla.sdy.out_shardings = "#sdy.sharding_per_value<[<@mesh, [{\22a\22}, {}]>]>"}} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %2 = stablehlo.custom_call @xla.sdy.LocalToGlobalShape(%1) : (tensor<4x8xf32>) -> tensor<8x8xf32>
    return %2 : tensor<8x8xf32>
  }
  func.func @xla.sdy.manual_computation_body(%arg0: tensor<4x8xf32>) -> tensor<4x8xf32> {
    %0 = stablehlo.custom_call @xla.sdy.GlobalToLocalShape(%arg0) : (tensor<4x8xf32>) -> tensor<4x2xf32>
    %1 = call @xla.sdy.manual_computation_body_0(%0) {mhlo.frontend_attributes = {xla.sdy.in_shardings = "#sdy.sharding_per_value<[<@mesh, [{}, {\22b\22}]>]>", xla.sdy.manual_axes = "#sdy<manual_axes{\22b\22}>", xla.sdy.out_shardings = "#sdy.sharding_per_value<[<@mesh, [{}, {\22b\22}]>]>"}} : (tensor<4x2xf32>) -> tensor<4x2xf32>
    %2 = stablehlo.custom_call @xla.sdy.LocalToGlobalShape(%1) : (tensor<4x2xf32>) -> tensor<4x8xf32>
    return %2 : tensor<4x8xf32>
  }
  func.func @xla.sdy.manual_computation_body_0(%arg0: tensor<4x2xf32>) -> tensor<4x2xf32> {
    %0 = stablehlo.negate %arg0 : tensor<4x2xf32>
    return %0 : tensor<4x2xf32>
  }
}

// -----

// The same with attributes on the custom calls, as of May 2025, and a tuple, as after a round trip through HLO.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %0 = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{"a"}]>, <@mesh, [{}]>] out_shardings=[<@mesh, [{"a"}]>] manual_axes={"a", "b"} (%arg2: tensor<4xf32>, %arg3: tensor<4xf32>) {
// CHECK-NEXT:   %1 = stablehlo.add %arg2, %arg3
// CHECK:      return %0
module attributes {mhlo.frontend_attributes = {xla.sdy.meshes = "{mesh = #sdy.mesh<[\"a\"=2, \"b\"=4]>}"}} {
  func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<4xf32>) -> tensor<8xf32> {
    %0 = stablehlo.custom_call @xla.sdy.GlobalToLocalShape(%arg0, %arg1) {has_side_effect = true, mhlo.frontend_attributes = {xla.sdy.in_shardings = "#sdy.sharding_per_value<[<@mesh, [{\22a\22}]>, <@mesh, [{}]>]>", xla.sdy.manual_axes = "#sdy<manual_axes{\22a\22, \22b\22}>"}} : (tensor<8xf32>, tensor<4xf32>) -> tuple<tensor<4xf32>, tensor<4xf32>>
    %1 = stablehlo.get_tuple_element %0[0] : (tuple<tensor<4xf32>, tensor<4xf32>>) -> tensor<4xf32>
    %2 = stablehlo.get_tuple_element %0[1] : (tuple<tensor<4xf32>, tensor<4xf32>>) -> tensor<4xf32>
    %3 = call @xla.sdy.manual_computation_body.2(%1, %2) {mhlo.frontend_attributes = {inlineable = "false"}} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %4 = stablehlo.custom_call @xla.sdy.LocalToGlobalShape(%3) {mhlo.frontend_attributes = {xla.sdy.manual_axes = "#sdy<manual_axes{\22a\22, \22b\22}>", xla.sdy.out_shardings = "#sdy.sharding_per_value<[<@mesh, [{\22a\22}]>]>"}} : (tensor<4xf32>) -> tensor<8xf32>
    return %4 : tensor<8xf32>
  }
  func.func private @xla.sdy.manual_computation_body.2(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %arg0, %arg1 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

module attributes {mhlo.frontend_attributes = {xla.sdy.meshes = "{mesh = #sdy.mesh<[\"a\"=2]>}"}} {
  func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error@+1 {{calls the body of a manual computation, but there is no single custom call @xla.sdy.GlobalToLocalShape}}
    %0 = call @xla.sdy.manual_computation_body(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @xla.sdy.manual_computation_body(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    return %arg0 : tensor<4xf32>
  }
}

// -----

// expected-error@+1 {{'mhlo.sharding', column 10 of '{devices=[2,3]<=[8]}': 6 tiles need as many devices, not 8}}
func.func @main(%arg0: tensor<6xf32> {mhlo.sharding = "{devices=[2,3]<=[8]}"}) {
  return
}

// -----

// expected-error@+1 {{'mhlo.num_partitions' is 8, but a mesh of its shardings has 4 devices: <["axis_0"=4]>}}
module attributes {mhlo.num_partitions = 8 : i32} {
  func.func @main(%arg0: tensor<8xf32> {mhlo.sharding = "{devices=[4]<=[4]}"}) {
    return
  }
}

// -----

// expected-remark@+1 {{are imported onto the mesh}}
module {
  // expected-error@+1 {{'mhlo.sharding' is invalid for 'tensor<6xf32>': tiles have 2 dimensions, but the tensor has 1}}
  func.func @main(%arg0: tensor<6xf32> {mhlo.sharding = "{devices=[2,3]<=[6]}"}) {
    return
  }
}

// -----

// expected-remark@+1 {{are imported onto the mesh}}
module {
  // expected-warning@+1 {{24 bytes have the sharding {manual} outside of a manual region; it is ignored}}
  func.func @main(%arg0: tensor<6xf32> {mhlo.sharding = "{manual}"}) {
    return
  }
}

// -----

// expected-remark@+1 {{are imported onto the mesh}}
module {
  func.func @main(%arg0: tensor<8xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}) -> tensor<4xf32> {
    %0 = stablehlo.custom_call @SPMDFullToShardShape(%arg0) {mhlo.sharding = "{manual}"} : (tensor<8xf32>) -> tensor<4xf32>
    // expected-error@+1 {{uses the local shard of a tensor outside of a manual part: a manual part takes its inputs from SPMDFullToShardShape}}
    return %0 : tensor<4xf32>
  }
}

// -----

// expected-remark@+1 {{are imported onto the mesh}}
module {
  func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<8xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}) -> tensor<8xf32> {
    // expected-error@+1 {{the local shard 'tensor<4xf32>' of 'tensor<8xf32>' does not match its operand's sharding, which gives 8: specify the sharding}}
    %0 = stablehlo.custom_call @SPMDFullToShardShape(%arg0) {mhlo.sharding = "{manual}"} : (tensor<8xf32>) -> tensor<4xf32>
    %1 = stablehlo.negate %0 : tensor<4xf32>
    %2 = stablehlo.custom_call @SPMDShardToFullShape(%1) {mhlo.sharding = "{devices=[2]<=[2]}"} : (tensor<4xf32>) -> tensor<8xf32>
    return %2 : tensor<8xf32>
  }
}
