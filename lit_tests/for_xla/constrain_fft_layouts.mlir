// RUN: sdy-opt %s -sdy-constrain-fft-layouts | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[IN:.*]] = stablehlo.custom_call @LayoutConstraint(%arg0) {operand_layouts = [dense<[1, 0]> : tensor<2xindex>], result_layouts = [dense<[1, 0]> : tensor<2xindex>]}
// CHECK-NEXT:    %[[FFT:.*]] = stablehlo.fft %[[IN]], type = FFT, length = [8]
// CHECK-NEXT:    %[[OUT:.*]] = stablehlo.custom_call @LayoutConstraint(%[[FFT]]) {operand_layouts = [dense<[1, 0]> : tensor<2xindex>], result_layouts = [dense<[1, 0]> : tensor<2xindex>]}
// CHECK-NEXT:    return %[[OUT]]
func.func @main(%arg0: tensor<4x8xcomplex<f32>>) -> tensor<4x8xcomplex<f32>> {
  %0 = stablehlo.fft %arg0, type = FFT, length = [8] : (tensor<4x8xcomplex<f32>>) -> tensor<4x8xcomplex<f32>>
  return %0 : tensor<4x8xcomplex<f32>>
}
