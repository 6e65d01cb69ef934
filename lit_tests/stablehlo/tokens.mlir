// RUN: sdy-opt %s | filecheck %s

// CHECK-LABEL: func.func @tokens(%arg0: !stablehlo.token, %arg1: tensor<4xf32>) {
func.func @tokens(%arg0: !stablehlo.token, %arg1: tensor<4xf32>) {
  // CHECK: stablehlo.create_token : !stablehlo.token
  %0 = stablehlo.create_token : !stablehlo.token
  // CHECK: stablehlo.after_all %0, %arg0 : !stablehlo.token
  %1 = stablehlo.after_all %0, %arg0 : !stablehlo.token
  // CHECK: "stablehlo.infeed"(%1) <{infeed_config = "x", layout = {{\[\[}}0]]}> : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)
  %2:2 = "stablehlo.infeed"(%1) <{infeed_config = "x", layout = [[0]]}> : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)
  // CHECK: "stablehlo.outfeed"(%arg1, %arg1, %2#1) <{outfeed_config = ""}> : (tensor<4xf32>, tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
  %3 = "stablehlo.outfeed"(%arg1, %arg1, %2#1) <{outfeed_config = ""}> : (tensor<4xf32>, tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
  // CHECK: "stablehlo.send"(%arg1, %3) <{channel_handle = #stablehlo.channel_handle<handle = 5, type = 2>, is_host_transfer = true}> : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
  %4 = "stablehlo.send"(%arg1, %3) <{channel_handle = #stablehlo.channel_handle<handle = 5, type = 2>, is_host_transfer = true}> : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
  // CHECK: "stablehlo.recv"(%4) <{channel_handle = #stablehlo.channel_handle<handle = 5, type = 3>, is_host_transfer = true}> : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)
  %5:2 = "stablehlo.recv"(%4) <{channel_handle = #stablehlo.channel_handle<handle = 5, type = 3>, is_host_transfer = true}> : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)
  return
}
