// RUN: sdy-opt %s | filecheck %s
// RUN: sdy-opt %s --mlir-print-op-generic | sdy-opt | filecheck %s

!tensor = tensor<4x8xf32>
!on_first = !mpmd.mesh_tensor<"first", tensor<4x8xf32>>
!on_second = !mpmd.mesh_tensor<"second", tensor<4x8xf32>, sharding=<@mesh, [{"x"}, {?}]>, memory_kind="pinned_host">
#topology = #mpmd.topology<<"first" : <["x"=2]>>, <"second" : <["x"=2, "y"=2]>>>

// CHECK-LABEL: func.func @before_import
// CHECK-SAME: topology = #mpmd.topology<<"first" : <["x"=2]>>, <"second" : <["x"=2, "y"=2]>>>
func.func @before_import(%arg0: !tensor) -> !tensor attributes {topology = #topology} {
  // CHECK-NEXT: %[[NAMED:.*]] = mpmd.named_tensor %arg0 name="a \22name\22" {mpmd.copies} : tensor<4x8xf32>
  %0 = mpmd.named_tensor %arg0 name="a \22name\22" {mpmd.copies} : !tensor
  // CHECK-NEXT: %[[STAGE:.*]]:2 = mpmd.named_computation<"stage"(1)> (%[[NAMED]]) {a} (%arg1: tensor<4x8xf32>) {
  // CHECK-NEXT:   mpmd.return %arg1, %arg1 : tensor<4x8xf32>, tensor<4x8xf32>
  // CHECK-NEXT: } : (tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  %1:2 = mpmd.named_computation<"stage"(1)>(%0) {a} (%arg1: !tensor) {
    mpmd.return %arg1, %arg1 : !tensor, !tensor
  } : (!tensor) -> (!tensor, !tensor)
  // CHECK-NEXT: mpmd.named_computation<"no transposes"> () () {
  // CHECK-NEXT:   mpmd.return
  // CHECK-NEXT: } : () -> ()
  mpmd.named_computation<"no transposes"(0)> () () {
    mpmd.return
  } : () -> ()
  // CHECK-NEXT: %[[LOOP:.*]] = mpmd.for (%[[STAGE]]#0) {iterations = 12 : ui32, unroll_factor = 3 : ui32} (%arg1: tensor<4x8xf32>, %index: tensor<ui32>) {
  // CHECK-NEXT:   mpmd.return %arg1 : tensor<4x8xf32>
  // CHECK-NEXT: } : tensor<4x8xf32>
  %2 = mpmd.for (%1#0) {iterations = 12 : ui32, unroll_factor = 3 : ui32} (%arg1: !tensor, %i: tensor<ui32>) {
    mpmd.return %arg1 : !tensor
  } : !tensor
  // CHECK-NEXT: %[[CALL:.*]] = mpmd.call @microbatch(%[[LOOP]]) {call_counter = 0 : ui32} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = mpmd.call @microbatch(%2) {call_counter = 0 : ui32} : (!tensor) -> !tensor
  // CHECK-NEXT: %[[BROADCAST:.*]] = mpmd.broadcast {a} %[[CALL]] : tensor<4x8xf32>
  %4 = mpmd.broadcast {a} %3 : !tensor
  // CHECK-NEXT: %[[MAX:.*]] = mpmd.reduce<max> %[[BROADCAST]], %arg0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %5 = mpmd.reduce<max> %4, %arg0 : (!tensor, !tensor) -> !tensor
  // CHECK-NEXT: %[[SAME:.*]] = mpmd.reduce<none> {a} %[[MAX]] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %6 = "mpmd.reduce"(%5) {a} : (!tensor) -> !tensor
  // CHECK-NEXT: %[[ASSIGNED:.*]] = mpmd.assign {origin = "stage"} %[[SAME]] : (tensor<4x8xf32>) -> !mpmd.mesh_tensor<"first", tensor<4x8xf32>>
  %7 = mpmd.assign {origin = "stage"} %6 : (!tensor) -> !on_first
  // CHECK-NEXT: mpmd.unassign %[[ASSIGNED]] : (!mpmd.mesh_tensor<"first", tensor<4x8xf32>>) -> tensor<4x8xf32>
  %8 = mpmd.unassign %7 : (!on_first) -> !tensor
  return %8 : !tensor
}

func.func private @microbatch(%arg0: !tensor) -> !tensor {
  return %arg0 : !tensor
}

// CHECK-LABEL: func.func @after_import
func.func @after_import(%arg0: !on_first) -> !on_second attributes {topology = #topology} {
  // CHECK-NEXT: %[[PLAIN:.*]] = mpmd.fragment<mesh="first", origin=[]> (%arg0) (%arg1: tensor<4x8xf32>) {
  %0 = mpmd.fragment<mesh="first", origin=[]> (%arg0) (%arg1: !tensor) {
    mpmd.return %arg1 : !tensor
  } : (!on_first) -> !on_first
  // CHECK: %[[STAGE:.*]] = mpmd.fragment<mesh="first", origin=["f"(1), "g"], stage=3, in_shardings=[<@mesh, [{"x"}, {}]>], out_shardings=[<@mesh, [{}, {?}]>]> (%[[PLAIN]]) {call_counter = 1 : ui32} (%arg1: tensor<4x8xf32>) {
  %1 = mpmd.fragment<mesh="first", origin=["f"(1), "g"], stage=3, in_shardings=[<@mesh, [{"x"}, {}]>],
      out_shardings=[<@mesh, [{}, {?}]>]>(%0) {call_counter = 1 : ui32} (%arg1: !tensor) {
    mpmd.return %arg1 : !tensor
  } : (!on_first) -> !on_first
  // CHECK: %[[SHARDED:.*]] = mpmd.fragment<mesh="first", origin=[], out_shardings=[<@mesh, [{"x"}, {}]>]> (%[[STAGE]])
  %2 = mpmd.fragment<mesh="first", origin=[], out_shardings=[<@mesh, [{"x"}, {}]>]> (%1) (%arg1: !tensor) {
    mpmd.return %arg1 : !tensor
  } : (!on_first) -> !on_first
  // CHECK: %[[CALLED:.*]] = mpmd.fragment_call<mesh="first", origin=["f"]> @f(%[[SHARDED]]) {remat} : (!mpmd.mesh_tensor<"first", tensor<4x8xf32>>) -> !mpmd.mesh_tensor<"first", tensor<4x8xf32>>
  %3 = mpmd.fragment_call<mesh="first", origin=["f"]> @f(%2) {remat} : (!on_first) -> !on_first
  // CHECK-NEXT: mpmd.transfer %[[CALLED]] : (!mpmd.mesh_tensor<"first", tensor<4x8xf32>>) -> !mpmd.mesh_tensor<"second", tensor<4x8xf32>, sharding=<@mesh, [{"x"}, {?}]>, memory_kind="pinned_host">
  %4 = mpmd.transfer %3 : (!on_first) -> !on_second
  return %4 : !on_second
}

func.func private @f(%arg0: !tensor) -> !tensor attributes {mesh_shape = #sdy.mesh<["x"=2]>} {
  return %arg0 : !tensor
}

// CHECK-LABEL: func.func @attributes
// CHECK-SAME: a = #mpmd.user_origin<"f"(2)>, b = #mpmd<origin"f">, c = #mpmd<mesh_with_origins"m1"["f", "g"]>
// CHECK-SAME: d = #mpmd.meshes_with_origins<"m1"["f"], "m2">, e = #mpmd.meshes_with_origins<>
// CHECK-SAME: f = #mpmd.reduction<or>, g = #mpmd.named_mesh<"m1" : <["x"=2]>>
func.func @attributes() attributes {
  a = #mpmd.user_origin<"f"(2)>, b = #mpmd<origin"f">, c = #mpmd<mesh_with_origins"m1"["f","g"]>,
  d = #mpmd.meshes_with_origins<"m1"["f"], "m2">, e = #mpmd.meshes_with_origins<>,
  f = #mpmd.reduction<or>, g = #mpmd.named_mesh<"m1": <["x"=2]>>
} {
  return
}
