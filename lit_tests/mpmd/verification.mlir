// RUN: sdy-opt %s --split-input-file --verify-diagnostics

!m1 = !mpmd.mesh_tensor<"m1", tensor<8xf32>>
func.func @no_topology(%arg0: !m1) -> !m1 {
  // expected-error @+1 {{Function does not have a topology attribute: no_topology}}
  %0 = mpmd.transfer %arg0 : (!m1) -> !m1
  return %0 : !m1
}

// -----

!m1 = !mpmd.mesh_tensor<"m1", tensor<8xf32>>
func.func @unknown_mesh(%arg0: !m1) -> !m1 attributes {topology = #mpmd.topology<<"m2" : <["x"=2]>>>} {
  // expected-error @+1 {{Topology doesn't have a mesh with name: m1}}
  %0 = mpmd.transfer %arg0 : (!m1) -> !m1
  return %0 : !m1
}

// -----

!m1 = !mpmd.mesh_tensor<"m1", tensor<8xf32>>
!m2 = !mpmd.mesh_tensor<"m2", tensor<9xf32>>
func.func @transfer_of_another_shape(%arg0: !m1) -> !m2
    attributes {topology = #mpmd.topology<<"m1" : <["x"=2]>>, <"m2" : <["x"=2]>>>} {
  // expected-error @+1 {{global tensor types are different}}
  %0 = mpmd.transfer %arg0 : (!m1) -> !m2
  return %0 : !m2
}

// -----

!uneven = !mpmd.mesh_tensor<"m1", tensor<9xf32>, sharding=<@mesh, [{"x"}]>>
func.func @uneven(%arg0: !uneven) -> !uneven attributes {topology = #mpmd.topology<<"m1" : <["x"=2]>>>} {
  // expected-error @+1 {{'mpmd.transfer' op dim 0 with size 9 is not divisible by its sharded size 2}}
  %0 = mpmd.transfer %arg0 : (!uneven) -> !uneven
  return %0 : !uneven
}

// -----

!m1 = !mpmd.mesh_tensor<"m1", tensor<8xf32>>
func.func @fragment_of_another_type(%arg0: !m1) attributes {topology = #mpmd.topology<<"m1" : <["x"=2]>>>} {
  // expected-error @+1 {{expected the type of the block argument to be global tensor type operand: 'tensor<8xf32>', got: 'tensor<4xf32>'}}
  mpmd.fragment<mesh="m1", origin=[]> (%arg0) (%arg1: tensor<4xf32>) { mpmd.return } : (!m1) -> ()
  return
}

// -----

!m1 = !mpmd.mesh_tensor<"m1", tensor<8xf32>>
func.func @fragment_on_another_mesh(%arg0: !m1)
    attributes {topology = #mpmd.topology<<"m1" : <["x"=2]>>, <"m2" : <["x"=2]>>>} {
  // expected-error @+1 {{expected the mesh name of the operand to match that of the fragment op: m1 != m2}}
  mpmd.fragment<mesh="m2", origin=[]> (%arg0) (%arg1: tensor<8xf32>) { mpmd.return } : (!m1) -> ()
  return
}

// -----

!m1 = !mpmd.mesh_tensor<"m1", tensor<8xf32>>
func.func @fragment_returns_nothing(%arg0: !m1) attributes {topology = #mpmd.topology<<"m1" : <["x"=2]>>>} {
  // expected-error @+1 {{number of returned values must match the number of results respectively: 0 != 1}}
  %0 = mpmd.fragment<mesh="m1", origin=[]> (%arg0) (%arg1: tensor<8xf32>) { mpmd.return } : (!m1) -> !m1
  return
}

// -----

!m1 = !mpmd.mesh_tensor<"m1", tensor<8xf32>>
func.func @no_callee(%arg0: !m1) attributes {topology = #mpmd.topology<<"m1" : <["x"=2]>>>} {
  // expected-error @+1 {{'f' does not reference a valid function}}
  mpmd.fragment_call<mesh="m1", origin=[]> @f(%arg0) : (!m1) -> ()
  return
}

// -----

!m1 = !mpmd.mesh_tensor<"m1", tensor<8xf32>>
func.func @callee_on_another_mesh(%arg0: !m1) attributes {topology = #mpmd.topology<<"m1" : <["x"=2]>>>} {
  // expected-error @+1 {{Expected mesh of fragment call and callee function to match: #sdy.mesh<["x"=2]> vs #sdy.mesh<["x"=4]>}}
  mpmd.fragment_call<mesh="m1", origin=[]> @f(%arg0) : (!m1) -> ()
  return
}
func.func private @f(%arg0: tensor<8xf32>) attributes {mesh_shape = #sdy.mesh<["x"=4]>} { return }

// -----

!m1 = !mpmd.mesh_tensor<"m1", tensor<8xf32>>
func.func @callee_without_mesh(%arg0: !m1) attributes {topology = #mpmd.topology<<"m1" : <["x"=2]>>>} {
  mpmd.fragment_call<mesh="m1", origin=[]> @f(%arg0) : (!m1) -> ()
  return
}
// expected-error @+1 {{Function does not have a mesh_shape attribute: f}}
func.func private @f(%arg0: tensor<8xf32>) { return }

// -----

!split = !mpmd.mesh_tensor<"m1", tensor<8xf32>, sharding=<@mesh, [{"x"}]>>
func.func @assign_split(%arg0: tensor<8xf32>) attributes {topology = #mpmd.topology<<"m1" : <["x"=2]>>>} {
  // expected-error @+1 {{MeshTensorType should be fully replicated: }}
  %0 = mpmd.assign %arg0 : (tensor<8xf32>) -> !split
  return
}

// -----

func.func @computation_of_another_type(%arg0: tensor<8xf32>) {
  // expected-error @+1 {{expected the type of the block argument to match the type of operand: 'tensor<4xf32>', got: 'tensor<8xf32>'}}
  mpmd.named_computation<"f"> (%arg0) (%arg1: tensor<4xf32>) { mpmd.return } : (tensor<8xf32>) -> ()
  return
}

// -----

func.func @unroll(%arg0: tensor<8xf32>) {
  // expected-error @+1 {{number of iterations 4 isn't divisible by unroll factor 3}}
  %0 = mpmd.for (%arg0) {iterations = 4 : ui32, unroll_factor = 3 : ui32} (%arg1: tensor<8xf32>, %i: tensor<ui32>) {
    mpmd.return %arg1 : tensor<8xf32>
  } : tensor<8xf32>
  return
}

// -----

func.func @no_index(%arg0: tensor<8xf32>) {
  // expected-error @+1 {{wrong number of arguments for region}}
  %0 = mpmd.for (%arg0) {iterations = 4 : ui32} (%arg1: tensor<8xf32>) {
    mpmd.return %arg1 : tensor<8xf32>
  } : tensor<8xf32>
  return
}

// -----

func.func @plain_operand(%arg0: tensor<8xf32>) {
  // expected-error @+1 {{operand #0 must be mesh tensor type, but got 'tensor<8xf32>'}}
  %0 = mpmd.transfer %arg0 : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @public_callee(%arg0: tensor<8xf32>) attributes {topology = #mpmd.topology<<"m1" : <["x"=2]>>>} {
  // expected-error @+1 {{MPMD CallOp callee with topology must also have visibility set to private}}
  mpmd.call @f(%arg0) : (tensor<8xf32>) -> ()
  return
}
func.func @f(%arg0: tensor<8xf32>) attributes {topology = #mpmd.topology<<"m1" : <["x"=2]>>>} { return }
