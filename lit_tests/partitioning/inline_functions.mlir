// RUN: sdy-opt %s -sdy-inline-functions | filecheck %s

sdy.mesh @mesh = <["x"=4]>

// Inlined values keep their uneven sharding (4 does not divide 7), which no argument or result can have.
// CHECK:      func.func @main(%arg0: tensor<7xf32>) -> tensor<7xf32> {
// CHECK-NEXT:   %0 = stablehlo.exponential %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
// CHECK-NEXT:   %1 = stablehlo.negate %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
// CHECK-NEXT:   return %1
// CHECK-NOT:  func.func private
func.func @main(%arg0: tensor<7xf32>) -> tensor<7xf32> {
  %0 = stablehlo.exponential %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<7xf32>
  %1 = call @f(%0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<7xf32>) -> tensor<7xf32>
  return %1 : tensor<7xf32>
}

// A reshard that only replicates an argument because it is uneven is removed; any other reshard stays.
// CHECK-LABEL: func.func @reshards
// CHECK-NEXT:    %0 = stablehlo.exponential %arg0
// CHECK-NEXT:    %1 = stablehlo.negate %0
// CHECK-NEXT:    %2 = sdy.reshard %0 <@mesh, [{"x":(1)2}]>
// CHECK-NEXT:    %3 = stablehlo.negate %2
// CHECK-NEXT:    return %1, %3
func.func @reshards(%arg0: tensor<7xf32>) -> (tensor<7xf32>, tensor<7xf32>) {
  %0 = stablehlo.exponential %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<7xf32>
  %1 = sdy.reshard %0 <@mesh, [{}]> : tensor<7xf32>
  %2 = call @f(%1) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<7xf32>) -> tensor<7xf32>
  %3 = sdy.reshard %0 <@mesh, [{"x":(1)2}]> : tensor<7xf32>
  %4 = call @f(%3) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<7xf32>) -> tensor<7xf32>
  return %2, %4 : tensor<7xf32>, tensor<7xf32>
}

func.func private @f(%arg0: tensor<7xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> tensor<7xf32> {
  %0 = stablehlo.negate %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<7xf32>
  return %0 : tensor<7xf32>
}
