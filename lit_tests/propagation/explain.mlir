// RUN: sdy-opt %s -sdy-propagation-pipeline --sdy-explain='%1' | filecheck %s
// RUN: sdy-opt %s -sdy-propagation-pipeline --sdy-explain='@main:%arg1' | filecheck %s --check-prefix=ARG
// RUN: sdy-opt %s -sdy-propagation-pipeline --sdy-explain='explain.mlir:14' | filecheck %s --check-prefix=LINE
// RUN: sdy-opt %s -sdy-propagation-pipeline --sdy-explain=1 | filecheck %s
// RUN: not sdy-opt %s -sdy-propagation-pipeline --sdy-explain='%7' 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: not sdy-opt %s --sdy-explain='%1' 2>&1 | filecheck %s --check-prefix=EARLY

sdy.mesh @mesh = <["x"=2, "y"=4]>

func.func @main(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg1: tensor<16x32xf32>)
    -> (tensor<8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"y"}]>}) {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
      : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  %1 = stablehlo.tanh %0 : tensor<8x32xf32>
  return %1 : tensor<8x32xf32>
}

// CHECK:      %1 has the sharding <@mesh, [{"x"}, {"y"}]>
// CHECK:        dimension 0, axis "x"
// CHECK-NEXT:     %1 <- %0                 stablehlo.tanh, factor i=8  ({{.*}}explain.mlir:14:8)
// CHECK-NEXT:     %0 <- %arg0              stablehlo.dot_general, factor i=8  ({{.*}}explain.mlir:12:8)
// CHECK-NEXT:     given to argument 0 of @main  ({{.*}}explain.mlir:10:17)
// CHECK:        dimension 1, axis "y"
// CHECK-NEXT:     %1 <- result 0 of @main  func.return, factor j=32  ({{.*}}explain.mlir:15:3)
// CHECK-NEXT:     given to result 0 of @main

// ARG:        %arg1 has the sharding <@mesh, [{}, {"y"}]>
// ARG:          dimension 1, axis "y"
// ARG-NEXT:       %arg1 <- %0              stablehlo.dot_general, factor j=32

// LINE:       %1 (stablehlo.tanh at {{.*}}explain.mlir:14:8) has the sharding <@mesh, [{"x"}, {"y"}]>

// UNKNOWN: error: there is no value %7 in @main: it has %arg0 to %arg1, %0 to %1

// EARLY: error: the module has not been propagated
