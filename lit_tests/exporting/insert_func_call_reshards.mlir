// RUN: sdy-opt %s -sdy-insert-func-call-reshards | filecheck %s

sdy.mesh @mesh = <["x"=2, "y"=2]>

// CHECK-LABEL: func.func @main
func.func @main(%arg0: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  // The call gets the result shardings of the function.
  // CHECK:      %[[CALL:.*]]:2 = call @split(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>, <@mesh, [{"y"}, {}]>]>}
  // CHECK-NEXT: %[[FIRST:.*]] = sdy.reshard %[[CALL]]#0 <@mesh, [{}, {"y"}]>
  // CHECK-NEXT: stablehlo.add %[[FIRST]], %[[CALL]]#1
  %0:2 = call @split(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"y"}]>, <@mesh, [{"y"}, {}]>]>}
      : (tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>)
  %1 = stablehlo.add %0#0, %0#1 : tensor<8x8xf32>

  // A function without shardings computes replicated tensors.
  // CHECK:      %[[WHOLE:.*]] = call @plain(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>}
  // CHECK-NEXT: sdy.reshard %[[WHOLE]] <@mesh, [{"x"}, {}]>
  %2 = call @plain(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}
      : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1, %2 : tensor<8x8xf32>, tensor<8x8xf32>
}

func.func private @split(%arg0: tensor<8x8xf32>)
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
        tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) {
  return %arg0, %arg0 : tensor<8x8xf32>, tensor<8x8xf32>
}

func.func private @plain(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  return %arg0 : tensor<8x8xf32>
}
