// RUN: sdy-opt %s -sdy-for-xla-pipeline | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK:         stablehlo.rng_bit_generator {{.*}} -> (tensor<2xui64>, tensor<8xui32>)
// CHECK:         "stablehlo.all_reduce"(%{{.*}})
// CHECK:           stablehlo.minimum %{{.*}}, %{{.*}} : tensor<i32>
// CHECK:         stablehlo.custom_call @LayoutConstraint
// CHECK-NEXT:    stablehlo.fft
func.func @main(%arg0: tensor<2xui64>) -> tensor<5xcomplex<f32>> {
  %state, %0 = stablehlo.rng_bit_generator %arg0, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<8xf32>)
  %1 = "stablehlo.all_reduce"(%0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = stablehlo.minimum %x, %y : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = stablehlo.fft %1, type = RFFT, length = [8] : (tensor<8xf32>) -> tensor<5xcomplex<f32>>
  return %2 : tensor<5xcomplex<f32>>
}
