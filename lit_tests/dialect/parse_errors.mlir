// RUN: sdy-opt %s --split-input-file --verify-diagnostics

// expected-error @+3 {{custom op 'sdy.mesh' expected string}}
// expected-error @+2 {{failed to parse Sdy_MeshAxis parameter 'name' which is to be a `::llvm::StringRef`}}
// expected-error @+1 {{failed to parse Sdy_Mesh parameter 'axes' which is to be a `::llvm::ArrayRef<MeshAxisAttr>`}}
sdy.mesh @axis_without_quotes = <["x"=2, y=2]>

// -----

// expected-error @+1 {{custom op 'sdy.mesh' duplicate axis name: "x"}}
sdy.mesh @twice = <["x"=2, "x"=2]>

// -----

// An attribute in its long form is not parsed by the operation: the message does not name the operation.
// expected-error-re @+2 {{{{^}}expected integer value}}
// expected-error-re @+1 {{{{^}}failed to parse Sdy_Mesh parameter 'device_ids'}}
sdy.mesh @no_devices = #sdy.mesh<["x"=2], device_ids=[]>

// -----

func.func @inner_list(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+4 {{custom op 'sdy.all_gather' expected string}}
  // expected-error @+3 {{custom op 'sdy.all_gather' failed to parse Sdy_AxisRef parameter 'name'}}
  // expected-error @+2 {{custom op 'sdy.all_gather' failed to parse Sdy_AxisRefList parameter 'value'}}
  // expected-error @+1 {{custom op 'sdy.all_gather' failed to parse Sdy_ListOfAxisRefLists parameter 'value'}}
  %0 = sdy.all_gather [{3}] %arg0 out_sharding=<@mesh, [{}]> : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// expected-error @+3 {{expected '{'}}
// expected-error @+2 {{failed to parse Sdy_TensorSharding parameter 'dim_shardings'}}
// expected-error @+1 {{failed to parse Sdy_TensorShardingPerValue parameter 'shardings'}}
module attributes {mhlo.a = #sdy.sharding_per_value<[<@mesh, [3]>]>} {}

// -----

// expected-error @+2 {{expecting symbol index <=2^63-1. Received: '9223372036854775808'}}
// expected-error @+1 {{Expecting factor index symbol 'i', received: 'z'}}
module attributes {mhlo.a = #sdy.op_sharding_rule<([i])->([i]) {z_9223372036854775808=2}>} {}

// -----

func.func @other_types(%arg0: tensor<8xf32>) -> tensor<4xf32> {
  // expected-error @+2 {{'stablehlo.transpose' op inferred type(s) 'tensor<8xf32>' are incompatible with return type(s) of operation 'tensor<4xf32>'}}
  // expected-error @+1 {{'stablehlo.transpose' op failed to infer returned types}}
  %0 = "stablehlo.transpose"(%arg0) <{permutation = array<i64: 0>}> : (tensor<8xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// The long form of an attribute is accepted in place of the short one.
module attributes {mhlo.a = #sdy.sharding_per_value<[#sdy.sharding<@mesh, []>, <@mesh, []>]>} {}
