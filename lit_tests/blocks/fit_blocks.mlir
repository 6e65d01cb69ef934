// RUN: sdy-opt %s -sdy-fit-blocks=block-bytes=4096 -split-input-file | filecheck %s

// A reduction that does not fit becomes a tree; its last part, of a prime length, is padded with the initial value.
// CHECK-LABEL: func.func @tree
// CHECK:         stablehlo.pad %arg0, %{{.*}}, low = [0], high = [{{.*}}]
// CHECK:         stablehlo.reshape
// CHECK:         stablehlo.reduce({{.*}}) applies stablehlo.add across dimensions = [1]
// CHECK:         stablehlo.reduce({{.*}}) applies stablehlo.add across dimensions = [0]
func.func @tree(%a: tensor<2053xf32>) -> tensor<f32> {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %c) applies stablehlo.add across dimensions = [0]
      : (tensor<2053xf32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// A reduction along rows that fit stays one step, as does a contraction.
// CHECK-LABEL: func.func @one_step
// CHECK-NEXT:    %[[C:.*]] = stablehlo.constant
// CHECK-NEXT:    stablehlo.reduce(%arg0 init: %[[C]])
// CHECK-NEXT:    stablehlo.dot %arg0, %arg1
// CHECK-NEXT:    return
func.func @one_step(%a: tensor<999x64xf32>, %b: tensor<64x999xf32>) -> (tensor<999xf32>, tensor<999x999xf32>) {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %c) applies stablehlo.add across dimensions = [1]
      : (tensor<999x64xf32>, tensor<f32>) -> tensor<999xf32>
  %1 = stablehlo.dot %a, %b : (tensor<999x64xf32>, tensor<64x999xf32>) -> tensor<999x999xf32>
  return %0, %1 : tensor<999xf32>, tensor<999x999xf32>
}

// -----

// A loop captures what it carries unchanged, and drops what nothing needs.
// CHECK-LABEL: func.func @loop
// CHECK:         stablehlo.while(%[[I:.*]] = %{{.*}}, %[[X:.*]] = %arg0)
// CHECK:           stablehlo.dot %[[X]], %arg1
func.func @loop(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:4 = stablehlo.while(%i = %zero, %a = %x, %b = %w, %c = %w) : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
  cond {
    %end = stablehlo.constant dense<4> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %1 = stablehlo.add %i, %one : tensor<i32>
    %2 = stablehlo.dot %a, %b : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %3 = stablehlo.add %c, %c : tensor<8x8xf32>
    stablehlo.return %1, %2, %b, %3 : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
  }
  return %0#1 : tensor<8x8xf32>
}

// -----

// 36x37 -> 37x36 has no blocks but the whole: its elements are flattened first.
// CHECK-LABEL: func.func @reshape
// CHECK-NEXT:    %[[FLAT:.*]] = stablehlo.reshape %arg0 : (tensor<36x37xf32>) -> tensor<1332xf32>
// CHECK-NEXT:    stablehlo.reshape %[[FLAT]] : (tensor<1332xf32>) -> tensor<37x36xf32>
func.func @reshape(%x: tensor<36x37xf32>) -> tensor<37x36xf32> {
  %0 = stablehlo.reshape %x : (tensor<36x37xf32>) -> tensor<37x36xf32>
  return %0 : tensor<37x36xf32>
}
