// RUN: sdy-opt %s -sdy-resolve-permutation-factors=least-communication=true | filecheck %s

sdy.mesh @mesh = <["x"=2]>

// The first device sends its shard of the second tensor, and the second device sends its shard of the first.
// CHECK-LABEL: func.func @split
func.func @split(%arg0: tensor<4x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg1: tensor<4x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<8x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  // CHECK-NEXT:  %[[RESULT:.*]] = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{"x"}, {}]>, <@mesh, [{"x"}, {}]>]
  // CHECK-SAME:    out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x"} (%[[A:.*]]: tensor<2x3xf32>, %[[B:.*]]: tensor<2x3xf32>)
  // CHECK-NEXT:  %[[POOL:.*]] = stablehlo.concatenate %[[A]], %[[B]], dim = 0
  // CHECK:       %[[SENT:.*]] = stablehlo.dynamic_slice %[[POOL]], %{{.*}}, sizes = [2, 3]
  // CHECK-NEXT:  %[[RECEIVED:.*]] = "stablehlo.collective_permute"(%[[SENT]]) {{.*}} dense<{{\[\[}}0, 1], [1, 0]]>
  // CHECK:       return %[[RESULT]] : tensor<8x3xf32>
  %0 = stablehlo.concatenate %arg0, %arg1, dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<8x3xf32>
  return %0 : tensor<8x3xf32>
}

// A replicated operand is not sent; the exchange replaces the reshards around a replicated concatenation.
// CHECK-LABEL: func.func @whole_operand
func.func @whole_operand(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %arg1: tensor<4xf32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // CHECK-NEXT:  %[[WHOLE:.*]] = sdy.reshard %arg1 <@mesh, [{}]>
  // CHECK-NEXT:  %[[RESULT:.*]] = sdy.manual_computation(%arg0, %[[WHOLE]]) in_shardings=[<@mesh, [{"x"}]>, <@mesh, [{}]>]
  // CHECK:       "stablehlo.collective_permute"{{.*}} dense<{{\[\[}}1, 0]]>
  // CHECK-NOT:   collective_permute
  // CHECK:       return %[[RESULT]] : tensor<8xf32>
  %0 = sdy.reshard %arg0 <@mesh, [{}]> : tensor<4xf32>
  %1 = stablehlo.concatenate %0, %arg1, dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %2 = sdy.reshard %1 <@mesh, [{"x"}]> : tensor<8xf32>
  return %2 : tensor<8xf32>
}

// CHECK-LABEL: func.func @along_another_dimension
func.func @along_another_dimension(%arg0: tensor<4x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  // CHECK-NEXT:  stablehlo.concatenate %arg0, %arg0, dim = 1
  %0 = stablehlo.concatenate %arg0, %arg0, dim = 1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// A rotation: each device keeps all rows but the last, which it sends to the next one.
// CHECK-LABEL: func.func @slices
func.func @slices(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // CHECK-NEXT:  %[[RESULT:.*]] = sdy.manual_computation(%arg0) {{.*}} (%[[OWN:.*]]: tensor<4xf32>)
  // CHECK:       %[[LAST:.*]] = stablehlo.slice %[[OWN]] [3:4]
  // CHECK-NEXT:  %[[RECEIVED:.*]] = "stablehlo.collective_permute"(%[[LAST]]) {{.*}} dense<{{\[\[}}0, 1], [1, 0]]>
  // CHECK-NEXT:  %[[KEPT:.*]] = stablehlo.slice %[[OWN]] [0:3]
  // CHECK-NEXT:  %[[PART:.*]] = stablehlo.concatenate %[[RECEIVED]], %[[KEPT]], dim = 0
  // CHECK-NEXT:  sdy.return %[[PART]]
  %0 = stablehlo.slice %arg0 [7:8] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<1xf32>
  %1 = stablehlo.slice %arg0 [0:7] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<7xf32>
  %2 = stablehlo.concatenate %0, %1, dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<1xf32>, tensor<7xf32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}
