// RUN: sdy-opt %s -sdy-insert-explicit-reshards="enable-full-version=true least-communication=true" | filecheck %s

sdy.mesh @mesh = <["x"=4]>

// A device has all of the left operand, and receives less of the right one than it would of the result.
// CHECK-LABEL: func.func @operand_gathered
func.func @operand_gathered(%arg0: tensor<512x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<512x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  // CHECK-NEXT:  %0 = sdy.reshard %arg1 <@mesh, [{}, {}]>
  // CHECK-NEXT:  %1 = stablehlo.dot %arg0, %0
  // CHECK-NEXT:  return %1
  %0 = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : (tensor<512x8xf32>, tensor<8x8xf32>) -> tensor<512x8xf32>
  return %0 : tensor<512x8xf32>
}

// CHECK-LABEL: func.func @small_result_summed
func.func @small_result_summed(%arg0: tensor<2x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg1: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<2x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  // CHECK-NEXT:  %0 = sdy.reshard %arg0 <@mesh, [{}, {"x"}]>
  // CHECK-NEXT:  %1 = stablehlo.dot %0, %arg1
  // CHECK-NEXT:  sdy.all_reduce {"x"} %1
  %0 = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : (tensor<2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
  return %0 : tensor<2x64xf32>
}

// To gather the right operand would take less, but leave each device with four times the work.
// CHECK-LABEL: func.func @much_work
func.func @much_work(%arg0: tensor<8192x4096xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg1: tensor<4096x4096xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<8192x4096xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  // CHECK-NEXT:  %0 = sdy.reshard %arg0 <@mesh, [{}, {"x"}]>
  // CHECK-NEXT:  %1 = stablehlo.dot %0, %arg1
  // CHECK-NEXT:  sdy.all_reduce {"x"} %1
  %0 = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : (tensor<8192x4096xf32>, tensor<4096x4096xf32>) -> tensor<8192x4096xf32>
  return %0 : tensor<8192x4096xf32>
}
