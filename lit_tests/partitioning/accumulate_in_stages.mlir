// RUN: sdy-opt %s -sdy-accumulate-in-stages -split-input-file | filecheck %s

sdy.mesh @mesh = <["x"=4]>

// A prefix sum: each device computes the running sums of its shard, and adds the sum of all previous shards. Shifts by
// one and by two shards combine the shards' totals.
// CHECK-LABEL: func.func @running_sum
// CHECK-NEXT:    %[[ZERO:.*]] = stablehlo.constant
// CHECK-NEXT:    %[[CUT:.*]] = stablehlo.reshape %arg0 {{.*}}[{"x"}, {}, {}]{{.*}} -> tensor<4x4x2xf32>
// CHECK-NEXT:    %[[OWN:.*]] = "stablehlo.reduce_window"(%[[CUT]], %[[ZERO]]) <{padding = dense<{{\[\[}}0, 0], [3, 0], [0, 0]]> : tensor<3x2xi64>, window_dimensions = array<i64: 1, 4, 1>}>
// CHECK:         %[[TOTALS:.*]] = stablehlo.slice %[[OWN]] [0:4, 3:4, 0:2] {{.*}}[{"x"}, {}, {}]
// CHECK-NEXT:    %[[ONE:.*]] = stablehlo.pad %[[TOTALS]], %[[ZERO]], low = [1, 0, 0], high = [-1, 0, 0], {{.*}}[{"x"}, {}, {}]
// CHECK-NEXT:    %[[PAIRS:.*]] = stablehlo.add %[[ONE]], %[[TOTALS]]
// CHECK-NEXT:    %[[TWO:.*]] = stablehlo.pad %[[PAIRS]], %[[ZERO]], low = [2, 0, 0], high = [-2, 0, 0]
// CHECK-NEXT:    %[[BEFORE:.*]] = stablehlo.add %[[TWO]], %[[ONE]]
// CHECK-NEXT:    %[[EACH:.*]] = stablehlo.broadcast_in_dim %[[BEFORE]], dims = [0, 1, 2] {{.*}} -> tensor<4x4x2xf32>
// CHECK-NEXT:    %[[SUM:.*]] = stablehlo.add %[[EACH]], %[[OWN]]
// CHECK-NEXT:    %[[RESULT:.*]] = stablehlo.reshape %[[SUM]] {{.*}}[{"x"}, {}]{{.*}} -> tensor<16x2xf32>
// CHECK-NEXT:    return %[[RESULT]]
func.func @running_sum(%a: tensor<16x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<16x2xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%a, %zero)
      <{padding = dense<[[15, 0], [0, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 16, 1>}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %1 = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %1 : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<16x2xf32>, tensor<f32>) -> tensor<16x2xf32>
  return %0 : tensor<16x2xf32>
}

// -----

sdy.mesh @mesh = <["x"=4]>

// A suffix maximum: each shard is combined with the maximum of all later shards. The uneven last shard is padded with
// the initial value. The result is replicated.
// CHECK-LABEL: func.func @from_the_end
// CHECK:         stablehlo.pad %arg0, %{{.*}}, low = [0], high = [1]
// CHECK-NEXT:    %[[CUT:.*]] = stablehlo.reshape {{.*}} -> tensor<4x2xi32>
// CHECK-NEXT:    %[[OWN:.*]] = "stablehlo.reduce_window"(%[[CUT]], {{.*}} <{padding = dense<{{\[\[}}0, 0], [0, 1]]>
// CHECK:         %[[TOTALS:.*]] = stablehlo.slice %[[OWN]] [0:4, 0:1]
// CHECK-NEXT:    %[[ONE:.*]] = stablehlo.pad %[[TOTALS]], %{{.*}}, low = [-1, 0], high = [1, 0]
// CHECK-NEXT:    %[[PAIRS:.*]] = stablehlo.maximum %[[TOTALS]], %[[ONE]]
// CHECK-NEXT:    %[[TWO:.*]] = stablehlo.pad %[[PAIRS]], %{{.*}}, low = [-2, 0], high = [2, 0]
// CHECK-NEXT:    %[[BEHIND:.*]] = stablehlo.maximum %[[ONE]], %[[TWO]]
// CHECK-NEXT:    %[[EACH:.*]] = stablehlo.broadcast_in_dim %[[BEHIND]]
// CHECK-NEXT:    stablehlo.maximum %[[OWN]], %[[EACH]]
// CHECK-NEXT:    stablehlo.reshape {{.*}} -> tensor<8xi32>
// CHECK-NEXT:    stablehlo.slice {{.*}} [0:7]
// CHECK-NEXT:    sdy.reshard {{.*}} <@mesh, [{}]>
func.func @from_the_end(%a: tensor<7xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<7xi32> {
  %low = stablehlo.constant dense<-2147483648> : tensor<i32>
  %0 = "stablehlo.reduce_window"(%a, %low)
      <{padding = dense<[[0, 6]]> : tensor<1x2xi64>, window_dimensions = array<i64: 7>}> ({
    ^bb0(%x: tensor<i32>, %y: tensor<i32>):
      %1 = stablehlo.maximum %x, %y : tensor<i32>
      stablehlo.return %1 : tensor<i32>
  }) : (tensor<7xi32>, tensor<i32>) -> tensor<7xi32>
  return %0 : tensor<7xi32>
}

// -----

sdy.mesh @mesh = <["x"=8]>

// Five of eight shards have rows: only their totals are combined.
// CHECK-LABEL: func.func @empty_shards
// CHECK:         %[[OWN:.*]] = "stablehlo.reduce_window"
// CHECK:         %[[LAST:.*]] = stablehlo.slice %[[OWN]] [0:8, 1:2]
// CHECK-NEXT:    %[[TOTALS:.*]] = stablehlo.slice %[[LAST]] [0:5, 0:1] {{.*}}[{"x"}, {}]
// CHECK-NEXT:    stablehlo.pad %[[TOTALS]], %{{.*}}, low = [1, 0], high = [-1, 0]
// CHECK:         stablehlo.pad %{{.*}}, low = [2, 0], high = [-2, 0]
// CHECK:         stablehlo.pad %{{.*}}, low = [4, 0], high = [-4, 0]
// CHECK-NEXT:    %[[BEFORE:.*]] = stablehlo.add
// CHECK-NEXT:    stablehlo.pad %[[BEFORE]], %{{.*}}, low = [0, 0], high = [3, 0], {{.*}} -> tensor<8x1xf32>
func.func @empty_shards(%a: tensor<9xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<9xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%a, %zero)
      <{padding = dense<[[8, 0]]> : tensor<1x2xi64>, window_dimensions = array<i64: 9>}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %1 = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %1 : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<9xf32>, tensor<f32>) -> tensor<9xf32>
  return %0 : tensor<9xf32>
}

// -----

sdy.mesh @mesh = <["x"=4]>

// Unchanged: windows that do not reach the beginning, and initial values that are not the identity of the reduction.
// CHECK-LABEL: func.func @unchanged
// CHECK-NOT:     stablehlo.reshape
func.func @unchanged(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<8xf32>, tensor<8xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%a, %zero)
      <{padding = dense<[[6, 0]]> : tensor<1x2xi64>, window_dimensions = array<i64: 7>}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %2 = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %2 : tensor<f32>
  }) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %1 = "stablehlo.reduce_window"(%a, %one)
      <{padding = dense<[[7, 0]]> : tensor<1x2xi64>, window_dimensions = array<i64: 8>}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %2 = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %2 : tensor<f32>
  }) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

// -----

sdy.mesh @mesh = <["x"=4]>

// The result is split along the other dimension, so that one all-to-all lets each device compute its columns locally.
// CHECK-LABEL: func.func @split_along_the_other_dimension
// CHECK:         %[[COLUMNS:.*]] = sdy.reshard %arg0 <@mesh, [{}, {"x"}]>
// CHECK-NEXT:    %[[RESULT:.*]] = "stablehlo.reduce_window"(%[[COLUMNS]], %{{.*}}) <{padding = dense<{{\[\[}}15, 0], [0, 0]]>
// CHECK:         {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>}
// CHECK-NEXT:    return %[[RESULT]]
func.func @split_along_the_other_dimension(%a: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%a, %zero)
      <{padding = dense<[[15, 0], [0, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 16, 1>}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %1 = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %1 : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : (tensor<16x8xf32>, tensor<f32>) -> tensor<16x8xf32>
  return %0 : tensor<16x8xf32>
}

// -----

sdy.mesh @mesh = <["x"=8]>

// Shards of one row: two all-to-alls, which split the columns meanwhile, receive less than the totals of 8 shards.
// CHECK-LABEL: func.func @few_rows
// CHECK:         %[[COLUMNS:.*]] = sdy.reshard %arg0 <@mesh, [{}, {"x"}]>
// CHECK-NEXT:    %[[RESULT:.*]] = "stablehlo.reduce_window"(%[[COLUMNS]], %{{.*}}) <{padding = dense<{{\[\[}}7, 0], [0, 0]]>
// CHECK:         sdy.reshard %[[RESULT]] <@mesh, [{"x"}, {}]>
func.func @few_rows(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%a, %zero)
      <{padding = dense<[[7, 0], [0, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 8, 1>}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %1 = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %1 : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
