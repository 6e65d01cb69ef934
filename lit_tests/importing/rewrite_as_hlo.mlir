// RUN: sdy-opt %s -sdy-rewrite-as-hlo | filecheck %s

sdy.mesh @mesh = <["x"=2]>

// CHECK-LABEL: func.func @broadcasts
func.func @broadcasts(%arg0: tensor<8x4xf32>, %arg1: tensor<8x1x4xf32>, %arg2: tensor<f32>) -> (
    tensor<8x4x1xf32>, tensor<8x16x4xf32>, tensor<1xf32>, tensor<4x8x1xf32>, tensor<8x4x16xf32>) {
  // CHECK-NEXT: %0 = stablehlo.reshape %arg0 : (tensor<8x4xf32>) -> tensor<8x4x1xf32>
  // CHECK-NEXT: %1 = stablehlo.reshape %arg1 : (tensor<8x1x4xf32>) -> tensor<8x4xf32>
  // CHECK-NEXT: %2 = stablehlo.broadcast_in_dim %1, dims = [0, 2] : (tensor<8x4xf32>) -> tensor<8x16x4xf32>
  // CHECK-NEXT: %3 = stablehlo.reshape %arg2 : (tensor<f32>) -> tensor<1xf32>
  // CHECK-NEXT: %4 = stablehlo.broadcast_in_dim %arg0, dims = [1, 0]
  // CHECK-NEXT: %5 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1]
  %0 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1] : (tensor<8x4xf32>) -> tensor<8x4x1xf32>
  %1 = stablehlo.broadcast_in_dim %arg1, dims = [0, 1, 2] : (tensor<8x1x4xf32>) -> tensor<8x16x4xf32>
  %2 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<1xf32>
  %3 = stablehlo.broadcast_in_dim %arg0, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8x1xf32>
  %4 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1] : (tensor<8x4xf32>) -> tensor<8x4x16xf32>
  return %0, %1, %2, %3, %4 : tensor<8x4x1xf32>, tensor<8x16x4xf32>, tensor<1xf32>, tensor<4x8x1xf32>, tensor<8x4x16xf32>
}

// CHECK-LABEL: func.func @with_a_sharding
func.func @with_a_sharding(%arg0: tensor<8xf32>) -> tensor<8x1xf32> {
  // CHECK-NEXT: stablehlo.broadcast_in_dim
  %0 = stablehlo.broadcast_in_dim %arg0, dims = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}
    : (tensor<8xf32>) -> tensor<8x1xf32>
  return %0 : tensor<8x1xf32>
}

// CHECK-LABEL: func.func @quantized
func.func @quantized(%arg0: tensor<2x!quant.uniform<i8:f32:0, {1.0:0, 2.0:0}>>)
    -> tensor<1x2x!quant.uniform<i8:f32:1, {1.0:0, 2.0:0}>> {
  // CHECK-NEXT: stablehlo.broadcast_in_dim
  %0 = stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<2x!quant.uniform<i8:f32:0, {1.0:0, 2.0:0}>>)
    -> tensor<1x2x!quant.uniform<i8:f32:1, {1.0:0, 2.0:0}>>
  return %0 : tensor<1x2x!quant.uniform<i8:f32:1, {1.0:0, 2.0:0}>>
}

// CHECK-LABEL: func.func @transposes
func.func @transposes(%arg0: tensor<8x1x4xf32>, %arg1: tensor<2x3x4xf32>) -> (tensor<1x8x4xf32>, tensor<4x3x2xf32>) {
  // CHECK-NEXT: %0 = stablehlo.reshape %arg0 : (tensor<8x1x4xf32>) -> tensor<1x8x4xf32>
  // CHECK-NEXT: stablehlo.transpose %arg1, dims = [2, 1, 0] : (tensor<2x3x4xf32>) -> tensor<4x3x2xf32>
  %0 = stablehlo.transpose %arg0, dims = [1, 0, 2] : (tensor<8x1x4xf32>) -> tensor<1x8x4xf32>
  %1 = stablehlo.transpose %arg1, dims = [1, 2, 0] : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %2 = stablehlo.transpose %1, dims = [1, 0, 2] : (tensor<3x4x2xf32>) -> tensor<4x3x2xf32>
  return %0, %2 : tensor<1x8x4xf32>, tensor<4x3x2xf32>
}

// CHECK-LABEL: func.func @loop
func.func @loop(%arg0: tensor<8xf32>, %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>},
                %arg2: tensor<i32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK-DAG:  %[[W:.*]] = sdy.sharding_constraint %arg1 <@mesh, [{?}]> : tensor<8xf32>
  // CHECK-NEXT: %[[RESULTS:.*]]:2 = stablehlo.while(%[[X:.*]] = %arg0, %[[I:.*]] = %arg2) : tensor<8xf32>, tensor<i32>
  // CHECK:      stablehlo.compare LT, %[[I]], %arg2
  // CHECK:      %[[NEXT:.*]] = stablehlo.add %[[X]], %[[W]]
  // CHECK-NEXT: stablehlo.add %[[I]], %[[I]]
  // CHECK:      return %[[RESULTS]]#0, %arg1
  %0:4 = stablehlo.while(%x = %arg0, %w = %arg1, %i = %arg2, %end = %arg2)
      : tensor<8xf32>, tensor<8xf32>, tensor<i32>, tensor<i32>
  cond {
    %1 = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.add %x, %w : tensor<8xf32>
    %2 = stablehlo.add %i, %i : tensor<i32>
    stablehlo.return %1, %w, %2, %end : tensor<8xf32>, tensor<8xf32>, tensor<i32>, tensor<i32>
  }
  return %0#0, %0#1 : tensor<8xf32>, tensor<8xf32>
}

// Axes propagate through a slice along sliced dimensions, but not through a dynamic slice. Indices are clamped.
// CHECK-LABEL: func.func @slices
func.func @slices(%arg0: tensor<8xf32>, %arg1: tensor<i32>, %arg2: tensor<?xf32>)
    -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  // CHECK:      stablehlo.slice %arg0 [6:8] : (tensor<8xf32>) -> tensor<2xf32>
  // CHECK-NEXT: stablehlo.slice %arg0 [3:5] : (tensor<8xf32>) -> tensor<2xf32>
  // CHECK-NEXT: stablehlo.dynamic_slice %arg0, %{{.*}}, sizes = [2]
  // CHECK-NEXT: stablehlo.dynamic_slice %arg2, %{{.*}}, sizes = [2]
  %c = stablehlo.constant dense<-7> : tensor<i32>
  %c_0 = stablehlo.constant dense<10> : tensor<i32>
  %less = stablehlo.compare LT, %c, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %sum = stablehlo.add %c, %c_0 : tensor<i32>
  %start = stablehlo.select %less, %sum, %c : tensor<i1>, tensor<i32>
  %unknown = stablehlo.add %c, %arg1 : tensor<i32>
  %0 = stablehlo.dynamic_slice %arg0, %c_0, sizes = [2] : (tensor<8xf32>, tensor<i32>) -> tensor<2xf32>
  %1 = stablehlo.dynamic_slice %arg0, %start, sizes = [2] : (tensor<8xf32>, tensor<i32>) -> tensor<2xf32>
  %2 = stablehlo.dynamic_slice %arg0, %unknown, sizes = [2] : (tensor<8xf32>, tensor<i32>) -> tensor<2xf32>
  %3 = stablehlo.dynamic_slice %arg2, %c, sizes = [2] : (tensor<?xf32>, tensor<i32>) -> tensor<2xf32>
  return %0, %1, %2, %3 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// Elementwise operations between reshapes that cancel each other have their shape.
// CHECK-LABEL: func.func @cancelled_reshapes
func.func @cancelled_reshapes(%arg0: tensor<8x4xf32>, %arg1: tensor<8x1xf32>, %arg2: tensor<f32>, %arg3: tensor<i1>)
    -> tensor<8x1xf32> {
  // CHECK:      %[[COLUMN:.*]] = stablehlo.slice %arg0
  // CHECK:      %[[FILLED:.*]] = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<8x1xf32>
  // CHECK-NEXT: %[[SUM:.*]] = stablehlo.add %arg1, %[[FILLED]] : tensor<8x1xf32>
  // CHECK-NEXT: %[[TWO:.*]] = stablehlo.constant dense<2.000000e+00> : tensor<8x1xf32>
  // CHECK-NEXT: %[[PRODUCT:.*]] = stablehlo.multiply %[[COLUMN]], %[[TWO]] : tensor<8x1xf32>
  // CHECK-NEXT: %[[SELECTED:.*]] = stablehlo.select %arg3, %[[PRODUCT]], %[[SUM]] : tensor<i1>, tensor<8x1xf32>
  // CHECK-NEXT: return %[[SELECTED]]
  %two = stablehlo.constant dense<2.0> : tensor<8xf32>
  %column = stablehlo.slice %arg0 [0:8, 3:4] : (tensor<8x4xf32>) -> tensor<8x1xf32>
  %0 = stablehlo.reshape %column : (tensor<8x1xf32>) -> tensor<8xf32>
  %1 = stablehlo.reshape %arg1 : (tensor<8x1xf32>) -> tensor<8xf32>
  %2 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<8xf32>
  %3 = stablehlo.multiply %0, %two : tensor<8xf32>
  %4 = stablehlo.add %1, %2 : tensor<8xf32>
  %5 = stablehlo.select %arg3, %3, %4 : tensor<i1>, tensor<8xf32>
  %6 = stablehlo.broadcast_in_dim %5, dims = [0] : (tensor<8xf32>) -> tensor<8x1xf32>
  return %6 : tensor<8x1xf32>
}

// An operand that is no reshape, a reshape of another shape, and a sharding are kept between the reshapes; so are
// reshapes of others than slices.
// CHECK-LABEL: func.func @kept_reshapes
func.func @kept_reshapes(%arg0: tensor<8x4xf32>, %arg1: tensor<8xf32>, %arg2: tensor<2x4xf32>, %arg3: tensor<8x1xf32>)
    -> (tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>) {
  // CHECK:         %[[COLUMN:.*]] = stablehlo.slice %arg0
  // CHECK-NEXT:    %[[RESHAPED:.*]] = stablehlo.reshape %[[COLUMN]]
  // CHECK:         stablehlo.add %[[RESHAPED]], %arg1
  // CHECK-COUNT-4: stablehlo.reshape {{.*}} -> tensor<8x1xf32>
  %column = stablehlo.slice %arg0 [0:8, 3:4] : (tensor<8x4xf32>) -> tensor<8x1xf32>
  %0 = stablehlo.reshape %column : (tensor<8x1xf32>) -> tensor<8xf32>
  %1 = stablehlo.reshape %arg2 : (tensor<2x4xf32>) -> tensor<8xf32>
  %2 = stablehlo.add %0, %arg1 : tensor<8xf32>
  %3 = stablehlo.add %0, %1 : tensor<8xf32>
  %4 = stablehlo.tanh %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
  %whole = stablehlo.reshape %arg3 : (tensor<8x1xf32>) -> tensor<8xf32>
  %tanh = stablehlo.tanh %whole : tensor<8xf32>
  %5 = stablehlo.reshape %2 : (tensor<8xf32>) -> tensor<8x1xf32>
  %6 = stablehlo.reshape %3 : (tensor<8xf32>) -> tensor<8x1xf32>
  %7 = stablehlo.reshape %4 : (tensor<8xf32>) -> tensor<8x1xf32>
  %8 = stablehlo.reshape %tanh : (tensor<8xf32>) -> tensor<8x1xf32>
  return %5, %6, %7, %8 : tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>
}
