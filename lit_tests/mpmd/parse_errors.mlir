// RUN: sdy-opt %s --split-input-file --verify-diagnostics

// expected-error @+3 {{expected string}}
// expected-error @+2 {{failed to parse Mpmd_NamedMesh parameter 'name' which is to be a `::llvm::StringRef`}}
// expected-error @+1 {{failed to parse Mpmd_Topology parameter 'meshes' which is to be a `::llvm::ArrayRef<NamedMeshAttr>`}}
func.func @name_without_quotes() attributes {topology = #mpmd.topology<<m1 : <["x"=2]>>>} { return }

// -----

// expected-error @+2 {{expected '<'}}
// expected-error @+1 {{failed to parse Mpmd_Topology parameter 'meshes'}}
func.func @no_mesh() attributes {topology = #mpmd.topology<>} { return }

// -----

// expected-error @+2 {{expected ::mlir::mpmd::ReductionType to be one of: none, add, max, min, mul, or, and}}
// expected-error @+1 {{failed to parse Mpmd_Reduction parameter 'reduction_type' which is to be a `::mlir::mpmd::ReductionType`}}
func.func @no_reduction() attributes {a = #mpmd.reduction<mean>} { return }

// -----

// expected-error @+1 {{invalid kind of type specified}}
func.func private @no_tensor(!mpmd.mesh_tensor<"m1", f32>)

// -----

// expected-error @+1 {{expected 'memory_kind'}}
func.func private @unknown_parameter(!mpmd.mesh_tensor<"m1", tensor<8xf32>, layout="a">)

// -----

func.func @no_mesh_name(%arg0: !mpmd.mesh_tensor<"m1", tensor<8xf32>>) {
  // expected-error @+1 {{custom op 'mpmd.fragment_call' expected 'mesh'}}
  mpmd.fragment_call<origin=[]> @f(%arg0) : (!mpmd.mesh_tensor<"m1", tensor<8xf32>>) -> ()
  return
}

// -----

func.func @unknown_key(%arg0: !mpmd.mesh_tensor<"m1", tensor<8xf32>>) {
  // expected-error @+1 {{expected '>'}}
  mpmd.fragment<mesh="m1", origin=[], in_shardings=[], stage=1> (%arg0) () {} : () -> ()
  return
}
