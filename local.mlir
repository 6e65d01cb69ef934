module attributes {sdy.partitioned} {
  sdy.mesh @mesh = <["x"=4]> {stablehlo.mesh = {axes = [{name = "x", size = 4 : i64}]}}
  func.func @main(%arg0: tensor<2x16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}, {}]>}) -> tensor<8x16x32xf32> {
    %0 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> : (tensor<2x16x32xf32>) -> tensor<8x16x32xf32>
    %1 = stablehlo.custom_call @tpu_custom_call(%0) {kernel_name = "softmax"} : (tensor<8x16x32xf32>) -> tensor<8x16x32xf32>
    %2 = stablehlo.custom_call @my_scan(%1) : (tensor<8x16x32xf32>) -> tensor<8x16x32xf32>
    return %2 : tensor<8x16x32xf32>
  }
}
