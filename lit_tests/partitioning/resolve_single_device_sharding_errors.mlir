// RUN: sdy-opt %s -split-input-file -verify-diagnostics -sdy-resolve-single-device-sharding

sdy.mesh @mesh = <["x"=2]>
sdy.mesh @one = <[], device_ids=[1]>

func.func @operand(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // expected-error @+1 {{is on one device, which has a part of an operand only: it has to be resharded first}}
  %0 = stablehlo.negate %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>} : tensor<4xf32>
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
