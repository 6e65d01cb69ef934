// RUN: sdy-opt %s -split-input-file -verify-diagnostics -sdy-convert-global-to-local

sdy.mesh @mesh = <["x"=2]>

func.func @indivisible(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // expected-error @+1 {{dimension 0 of size 5 cannot be split evenly into 2 shards over {"x"}: the value has type tensor<5xf32>}}
  %0 = stablehlo.iota dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<5xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>

func.func @reshard(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // expected-error @+1 {{'sdy.reshard' op changes the sharding of a tensor: sdy-reshard-to-collectives must run first}}
  %0 = sdy.reshard %arg0 <@mesh, [{}]> : tensor<4xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>

func.func @result(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<4xf32> {
  // expected-error @+1 {{a local shard of type tensor<2xf32> is used where tensor<4xf32> is expected: sdy-insert-explicit-reshards must run first}}
  return %arg0 : tensor<4xf32>
}

// -----

sdy.mesh @mesh = <["x"=2]>

func.func @reverse(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
    -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // expected-error @+2 {{'stablehlo.reverse' op cannot be partitioned: a device would need data of other devices}}
  // expected-error @+1 {{failed to legalize operation 'stablehlo.reverse' that was explicitly marked illegal}}
  %0 = stablehlo.reverse %arg0, dims = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

sdy.mesh @mesh = <["x"=2]>

func.func @slice(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
    -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // expected-error @+2 {{'stablehlo.slice' op cannot be partitioned: dimension 0 is sharded, and a device would need data of other devices}}
  // expected-error @+1 {{failed to legalize operation 'stablehlo.slice' that was explicitly marked illegal}}
  %0 = stablehlo.slice %arg0 [0:4] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
