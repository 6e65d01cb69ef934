// RUN: sdy-opt %s -sdy-make-where-needed | filecheck %s

sdy.mesh @mesh = <["x"=4]>

// What no tensor is needed for, each device makes for itself; the first one goes where nobody else uses it.
// CHECK-LABEL: func.func @made_of_nothing
// CHECK-NEXT:    %[[IOTA:.*]] = stablehlo.iota dim = 0 {{.*}}[{}, {"x"}]
// CHECK-NEXT:    %[[HERE:.*]] = stablehlo.constant {{.*}}[{"x"}, {}]{{.*}} dense<1>
// CHECK-NEXT:    %[[THERE:.*]] = stablehlo.constant {{.*}}[{}, {"x"}]{{.*}} dense<1>
// CHECK-NEXT:    %[[REPEATED:.*]] = stablehlo.broadcast_in_dim %arg0, dims = [] {{.*}}[{}, {"x"}]
// CHECK-NEXT:    return %[[IOTA]], %[[HERE]], %[[THERE]], %[[REPEATED]]
func.func @made_of_nothing(%scalar: tensor<i32>) -> (tensor<8x8xi32>, tensor<8x8xi32>, tensor<8x8xi32>, tensor<8x8xi32>) {
  %0 = stablehlo.iota dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<8x8xi32>
  %1 = sdy.reshard %0 <@mesh, [{}, {"x"}]> : tensor<8x8xi32>
  %2 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} dense<1> : tensor<8x8xi32>
  %3 = sdy.reshard %2 <@mesh, [{}, {"x"}]> : tensor<8x8xi32>
  %4 = stablehlo.broadcast_in_dim %scalar, dims = [] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}
      : (tensor<i32>) -> tensor<8x8xi32>
  %5 = sdy.reshard %4 <@mesh, [{}, {"x"}]> : tensor<8x8xi32>
  return %1, %2, %3, %5 : tensor<8x8xi32>, tensor<8x8xi32>, tensor<8x8xi32>, tensor<8x8xi32>
}

// What is made of a tensor is moved.
// CHECK-LABEL: func.func @made_of_a_tensor
// CHECK:         sdy.reshard
func.func @made_of_a_tensor(%a: tensor<8xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8x8xi32> {
  %0 = stablehlo.broadcast_in_dim %a, dims = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}
      : (tensor<8xi32>) -> tensor<8x8xi32>
  %1 = sdy.reshard %0 <@mesh, [{}, {"x"}]> : tensor<8x8xi32>
  return %1 : tensor<8x8xi32>
}
