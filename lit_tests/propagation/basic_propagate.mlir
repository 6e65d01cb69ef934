// RUN: sdy-opt %s -split-input-file -sdy-basic-propagate | filecheck %s

sdy.mesh @mesh = <["a"=2, "b"=2]>

// Axes propagate from operands to results and back, and between operands that share a factor.
// CHECK-LABEL: func.func @main
// CHECK-SAME:    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b", ?}, {?}]>}
// CHECK-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>})
// CHECK:         stablehlo.dot_general
// CHECK-SAME:      {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>}
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}, %arg1: tensor<8x8xf32>)
    -> tensor<8x8xf32> {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
      : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

sdy.mesh @mesh = <["a"=2, "b"=2]>

// Conflicting axes do not propagate.
// CHECK-LABEL: func.func @main
// CHECK:         stablehlo.dot_general {{.*}} contracting_dims = [1] x [0] :
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
                %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
      : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

sdy.mesh @mesh = <["a"=8]>

// A reshape that splits a dimension splits its axis into sub-axes.
// CHECK-LABEL: func.func @main
// CHECK:         stablehlo.reshape
// CHECK-SAME:      <@mesh, [{"a":(1)4, ?}, {"a":(4)2, ?}]>
func.func @main(%arg0: tensor<24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<4x6xf32> {
  %0 = stablehlo.reshape %arg0 : (tensor<24xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// -----

sdy.mesh @mesh = <["a"=2, "b"=2]>

// Axes propagate through a barrier in one direction only.
// CHECK-LABEL: func.func @main
// CHECK-SAME:    %arg1: tensor<8xf32>)
// CHECK:         stablehlo.add
// CHECK-SAME:      <@mesh, [{"a", ?}]>
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}, %arg1: tensor<8xf32>)
    -> tensor<8xf32> {
  %0 = sdy.propagation_barrier %arg1 allowed_direction=FORWARD : tensor<8xf32>
  %1 = stablehlo.add %arg0, %0 : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

sdy.mesh @mesh = <["a"=2, "b"=2]>

// The members of a sharding group get the same sharding.
// CHECK-LABEL: func.func @main
// CHECK-SAME:    %arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}]>}
func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>})
    -> (tensor<8xf32>, tensor<8xf32>) {
  sdy.sharding_group %arg0 group_id=0 : tensor<8xf32>
  %0 = stablehlo.tanh %arg1 : tensor<8xf32>
  sdy.sharding_group %0 group_id=0 : tensor<8xf32>
  return %arg0, %0 : tensor<8xf32>, tensor<8xf32>
}
