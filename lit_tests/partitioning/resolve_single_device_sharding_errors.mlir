// RUN: sdy-opt %s -split-input-file -verify-diagnostics -sdy-resolve-single-device-sharding

sdy.mesh @mesh = <["x"=2]>
sdy.mesh @one = <[], device_ids=[1]>

func.func @collective(%arg0: tensor<i1>, %arg1: tensor<4xf32>) {
  %0 = "stablehlo.if"(%arg0) ({
    // expected-error @+1 {{is a collective in an operation with a single-device sharding}}
    %1 = sdy.all_reduce {"x"} %arg1 out_sharding=<@mesh, [{}]> : tensor<4xf32>
    stablehlo.return %1 : tensor<4xf32>
  }, {
    stablehlo.return %arg1 : tensor<4xf32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>} : (tensor<i1>) -> tensor<4xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>
sdy.mesh @one = <[], device_ids=[1]>
sdy.mesh @two = <[], device_ids=[0]>

func.func @results() {
  // expected-error @+1 {{has conflicting single-device result shardings}}
  %0:2 = stablehlo.custom_call @f() {sdy.sharding = #sdy.sharding_per_value<[<@one, []>, <@two, []>]>}
    : () -> (tensor<f32>, tensor<f32>)
  return
}
