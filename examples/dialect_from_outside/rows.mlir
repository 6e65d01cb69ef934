sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%x: tensor<16x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}, %weight: tensor<64xf32>)
    -> tensor<16x64xf32> {
  %0 = norm.rms %x, %weight : tensor<16x64xf32>, tensor<64xf32>
  %1 = stablehlo.tanh %0 : tensor<16x64xf32>
  return %1 : tensor<16x64xf32>
}
