// RUN: sdy-opt %s -split-input-file -verify-diagnostics -sdy-pad-for-divisibility

sdy.mesh @mesh = <["x"=4]>

// expected-error @+2 {{'func.func' op argument #0 has a non-divisible sharding. Shardy expects function IO to be divisible.}}
// expected-error @+1 {{failed to legalize operation 'func.func'}}
func.func @argument(%arg0: tensor<7xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  return
}

// -----

sdy.mesh @mesh = <["x"=4]>

// expected-error @+2 {{'func.func' op result #0 has a non-divisible sharding. Shardy expects function IO to be divisible.}}
// expected-error @+1 {{failed to legalize operation 'func.func'}}
func.func @result(%arg0: tensor<7xf32>) -> (tensor<7xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  return %arg0 : tensor<7xf32>
}

// -----

sdy.mesh @mesh = <["x"=4]>

func.func @reverse(%arg0: tensor<7xf32>) -> tensor<7xf32> {
  %0 = sdy.all_slice [{"x"}] %arg0 out_sharding=<@mesh, [{"x"}]> : tensor<7xf32>
  // expected-warning @+1 {{'stablehlo.reverse' op is replicated along the dimensions that its axes do not divide}}
  %1 = stablehlo.reverse %0, dims = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<7xf32>
  %2 = sdy.all_gather [{"x"}] %1 out_sharding=<@mesh, [{}]> : tensor<7xf32>
  return %2 : tensor<7xf32>
}

// -----

sdy.mesh @mesh = <["x"=4]>

func.func @parts_before_and_after(%arg0: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2}]>})
    -> (tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2}]>}) {
  // expected-warning @+1 {{'sdy.all_slice' op gathers dimensions [0], which need different padding before and after}}
  %0 = sdy.all_slice [{"x":(2)2}] %arg0 out_sharding=<@mesh, [{"x"}]> : tensor<6xf32>
  // expected-warning @+1 {{'sdy.all_gather' op gathers dimensions [0], which need different padding before and after}}
  %1 = sdy.all_gather [{"x":(2)2}] %0 out_sharding=<@mesh, [{"x":(1)2}]> : tensor<6xf32>
  return %1 : tensor<6xf32>
}
