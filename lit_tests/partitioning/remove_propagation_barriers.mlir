// RUN: sdy-opt %s -sdy-remove-propagation-barriers | filecheck %s

sdy.mesh @mesh = <["x"=2]>

// A barrier of a barrier, a barrier whose result has another sharding, and a barrier in a loop.
// CHECK-LABEL: func.func @main
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %arg1: tensor<i1>) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK-NEXT: %0 = stablehlo.negate %arg0
  // CHECK-NEXT: %1:2 = stablehlo.while(%iterArg = %0, %iterArg_0 = %arg1)
  // CHECK-NEXT: cond {
  // CHECK-NEXT: stablehlo.return %iterArg_0
  // CHECK-NEXT: } do {
  // CHECK-NEXT: stablehlo.return %iterArg, %iterArg_0
  // CHECK-NEXT: }
  // CHECK-NEXT: return %1#0, %0
  %0 = stablehlo.negate %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
  %1 = sdy.propagation_barrier %0 allowed_direction=NONE : tensor<8xf32>
  %2 = sdy.propagation_barrier %1 allowed_direction=BACKWARD {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : tensor<8xf32>
  %3:2 = stablehlo.while(%x = %2, %go = %arg1) : tensor<8xf32>, tensor<i1>
   cond {
    stablehlo.return %go : tensor<i1>
   } do {
    %4 = sdy.propagation_barrier %x allowed_direction=FORWARD : tensor<8xf32>
    stablehlo.return %4, %go : tensor<8xf32>, tensor<i1>
   }
  return %3#0, %1 : tensor<8xf32>, tensor<8xf32>
}
