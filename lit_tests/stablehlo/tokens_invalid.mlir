// RUN: sdy-opt %s -split-input-file -verify-diagnostics

func.func @sent_from_the_host(%arg0: tensor<4xf32>, %arg1: !stablehlo.token) {
  // expected-error @+2 {{channel_type should be DEVICE_TO_HOST when is_host_transfer is true}}
  // expected-error @+1 {{'stablehlo.send' op failed to infer returned types}}
  %0 = "stablehlo.send"(%arg0, %arg1) {channel_handle = #stablehlo.channel_handle<handle = 5, type = 3>, is_host_transfer = true} : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
  return
}

// -----

func.func @received_without_a_token(%arg0: !stablehlo.token) {
  // expected-error @+1 {{last element of result types is expected to be of token type, but got 'tensor<4xf32>'}}
  %0 = "stablehlo.recv"(%arg0) {channel_handle = #stablehlo.channel_handle<handle = 5, type = 1>} : (!stablehlo.token) -> tensor<4xf32>
  return
}

// -----

func.func @too_few_layouts(%arg0: !stablehlo.token) {
  // expected-error @+1 {{layout-attribute size must be 2 (which is the number of op-results - 1 (for token result)), but got 1}}
  %0:3 = "stablehlo.infeed"(%arg0) {infeed_config = "", layout = [[0]]} : (!stablehlo.token) -> (tensor<4xf32>, tensor<4xf32>, !stablehlo.token)
  return
}

// -----

func.func @state_of_another_size(%arg0: tensor<2xui64>) {
  // expected-error @+1 {{output state shape must be compatible with initial state shape. Got: 'tensor<2xui64>' and 'tensor<3xui64>'}}
  %0, %1 = stablehlo.rng_bit_generator %arg0, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<3xui64>, tensor<4xui32>)
  return
}

// -----

func.func @normal_integers(%arg0: tensor<i32>, %arg1: tensor<1xi64>) {
  // expected-error @+2 {{mu and sigma must be floats}}
  // expected-error @+1 {{'stablehlo.rng' op failed to infer returned types}}
  %0 = stablehlo.rng %arg0, %arg0, %arg1, distribution = NORMAL : (tensor<i32>, tensor<i32>, tensor<1xi64>) -> tensor<?xi32>
  return
}
