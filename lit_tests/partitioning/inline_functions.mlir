// RUN: sdy-opt %s -sdy-inline-functions | filecheck %s

sdy.mesh @mesh = <["x"=4]>

// Inside, the value keeps its sharding, which an argument or a result could not have: 4 does not divide 7.
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

func.func private @f(%arg0: tensor<7xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> tensor<7xf32> {
  %0 = stablehlo.negate %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<7xf32>
  return %0 : tensor<7xf32>
}
