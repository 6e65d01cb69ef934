// RUN: sdy-opt %s -sdy-reduce-in-stages -split-input-file | filecheck %s

sdy.mesh @mesh = <["x"=4, "y"=2]>

// The first stage starts from the identity, so that the initial value counts once. In the second stage, each device
// reduces one shard of the results, which sends less than all-gathering the partial results.
// CHECK-LABEL: func.func @bits
// CHECK-NEXT:    %[[THREE:.*]] = stablehlo.constant dense<3>
// CHECK-NEXT:    %[[ZERO:.*]] = stablehlo.constant dense<0>
// CHECK-NEXT:    %[[CUT:.*]] = stablehlo.reshape %arg0 {{.*}}[{"x"}, {}, {}]{{.*}} -> tensor<4x4x8xi32>
// CHECK-NEXT:    %[[PARTS:.*]] = stablehlo.reduce(%[[CUT]] init: %[[ZERO]]) applies stablehlo.xor across dimensions = [1] {{.*}}[{"x"}, {}]{{.*}} -> tensor<4x8xi32>
// CHECK-NEXT:    %[[HERE:.*]] = sdy.reshard %[[PARTS]] <@mesh, [{}, {"x"}]>
// CHECK-NEXT:    %[[TOTAL:.*]] = stablehlo.reduce(%[[HERE]] init: %[[THREE]]) applies stablehlo.xor across dimensions = [0] {{.*}}[{"x"}]
// CHECK-NEXT:    %[[ALL:.*]] = sdy.reshard %[[TOTAL]] <@mesh, [{}]>
// CHECK-NEXT:    return %[[ALL]]
func.func @bits(%a: tensor<16x8xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8xi32> {
  %three = stablehlo.constant dense<3> : tensor<i32>
  %0 = stablehlo.reduce(%a init: %three) applies stablehlo.xor across dimensions = [0]
      : (tensor<16x8xi32>, tensor<i32>) -> tensor<8xi32>
  return %0 : tensor<8xi32>
}

// -----

sdy.mesh @mesh = <["x"=4, "y"=2]>

// A product over two split dimensions has a stage for each. A scalar result cannot be split: every device computes it.
// CHECK-LABEL: func.func @product
// CHECK:         stablehlo.reduce({{.*}}) applies stablehlo.multiply across dimensions = [1, 3] {{.*}}[{"x"}, {"y"}]{{.*}} -> tensor<4x2xf32>
// CHECK-NEXT:    sdy.reshard {{.*}} <@mesh, [{"x"}, {}]>
// CHECK-NEXT:    stablehlo.reduce({{.*}}) applies stablehlo.multiply across dimensions = [1] {{.*}}[{"x"}]{{.*}} -> tensor<4xf32>
// CHECK-NEXT:    sdy.reshard {{.*}} <@mesh, [{}]>
// CHECK-NEXT:    stablehlo.reduce({{.*}}) applies stablehlo.multiply across dimensions = [0]
func.func @product(%a: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<f32> {
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %one) applies stablehlo.multiply across dimensions = [0, 1]
      : (tensor<8x6xf32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

sdy.mesh @mesh = <["x"=4, "y"=2]>

// An argmax: the initial values are idempotent, so that they may count several times, and pad the uneven dimension. The
// indices, which have another sharding, are resharded like the elements.
// CHECK-LABEL: func.func @largest
// CHECK:         %[[INDICES:.*]] = sdy.reshard %arg1 <@mesh, [{"x"}, {"y"}]>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.pad %arg0, %cst, low = [0, 0], high = [0, 1]
// CHECK-NEXT:    %[[B:.*]] = stablehlo.reshape %[[A]] {{.*}}[{"x"}, {"y"}, {}]{{.*}} -> tensor<8x2x4xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.pad %[[INDICES]], %c, low = [0, 0], high = [0, 1]
// CHECK-NEXT:    %[[D:.*]] = stablehlo.reshape %[[C]] {{.*}}[{"x"}, {"y"}, {}]{{.*}} -> tensor<8x2x4xi32>
// CHECK-NEXT:    %[[PARTS:.*]]:2 = stablehlo.reduce(%[[B]] init: %cst), (%[[D]] init: %c) across dimensions = [2]
// CHECK:         %[[E:.*]] = sdy.reshard %[[PARTS]]#0 <@mesh, [{"x"}, {}]>
// CHECK-NEXT:    %[[F:.*]] = sdy.reshard %[[PARTS]]#1 <@mesh, [{"x"}, {}]>
// CHECK-NEXT:    %[[TOTAL:.*]]:2 = stablehlo.reduce(%[[E]] init: %cst), (%[[F]] init: %c) across dimensions = [1]
// CHECK:         return %[[TOTAL]]#1
func.func @largest(%a: tensor<8x7xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}, %b: tensor<8x7xi32>)
    -> (tensor<8xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.reduce(%a init: %low), (%b init: %zero) across dimensions = [1]
      {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>, <@mesh, [{"x"}]>]>}
      : (tensor<8x7xf32>, tensor<8x7xi32>, tensor<f32>, tensor<i32>) -> (tensor<8xf32>, tensor<8xi32>)
   reducer(%x: tensor<f32>, %y: tensor<f32>) (%i: tensor<i32>, %j: tensor<i32>) {
    %1 = stablehlo.compare GE, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %2 = stablehlo.select %1, %x, %y : tensor<i1>, tensor<f32>
    %3 = stablehlo.select %1, %i, %j : tensor<i1>, tensor<i32>
    stablehlo.return %2, %3 : tensor<f32>, tensor<i32>
  }
  return %0#1 : tensor<8xi32>
}

// -----

sdy.mesh @mesh = <["x"=4, "y"=2]>

// A reduction that is not commutative is split only along its major dimension.
// CHECK-LABEL: func.func @first_of_two_dimensions
// CHECK:         stablehlo.reduce({{.*}}) across dimensions = [1, 2] {{.*}}[{"x"}]{{.*}} (tensor<4x2x6xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK:         stablehlo.reduce({{.*}}) across dimensions = [0]
func.func @first_of_two_dimensions(%a: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>})
    -> tensor<f32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %zero) across dimensions = [0, 1] : (tensor<8x6xf32>, tensor<f32>) -> tensor<f32>
   reducer(%x: tensor<f32>, %y: tensor<f32>) {
    %none = stablehlo.constant dense<0.0> : tensor<f32>
    %1 = stablehlo.compare NE, %x, %none : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %2 = stablehlo.select %1, %x, %y : tensor<i1>, tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }
  return %0 : tensor<f32>
}

// -----

sdy.mesh @mesh = <["x"=4]>

// Unchanged: a maximum, which an all-reduce combines, and reductions with an unknown or a non-neutral initial value.
// CHECK-LABEL: func.func @unchanged
// CHECK-NOT:     stablehlo.reshape
func.func @unchanged(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %start: tensor<f32>)
    -> (tensor<f32>, tensor<f32>, tensor<f32>) {
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %one) applies stablehlo.maximum across dimensions = [0]
      : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  %1 = stablehlo.reduce(%a init: %start) across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
   reducer(%x: tensor<f32>, %y: tensor<f32>) {
    %2 = stablehlo.atan2 %x, %y : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }
  %3 = stablehlo.reduce(%a init: %one) across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
   reducer(%x: tensor<f32>, %y: tensor<f32>) {
    %4 = stablehlo.add %x, %y : tensor<f32>
    %5 = stablehlo.negate %4 : tensor<f32>
    %6 = stablehlo.negate %5 : tensor<f32>
    stablehlo.return %6 : tensor<f32>
  }
  return %0, %1, %3 : tensor<f32>, tensor<f32>, tensor<f32>
}
