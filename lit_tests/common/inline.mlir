// RUN: sdy-opt %s -inline 2>&1 | filecheck %s
// RUN: sdy-opt %s -inline -verify-diagnostics

// CHECK-LABEL: func.func @main
func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<i1>) -> tensor<8xf32> {
  // CHECK-NEXT: %0 = stablehlo.negate %arg0
  // CHECK-NEXT: %1 = stablehlo.abs %0
  // CHECK-NEXT: %2 = "stablehlo.if"(%arg1) ({
  // CHECK-NEXT:   %[[FIRST:.*]] = stablehlo.negate %1
  // CHECK-NEXT:   %[[SECOND:.*]] = stablehlo.abs %[[FIRST]]
  // CHECK-NEXT:   stablehlo.return %[[SECOND]]
  // CHECK:      %3 = call @kept(%2)
  // CHECK-NEXT: %4 = stablehlo.abs %3
  // CHECK-NEXT: %5 = call @recursive(%4)
  // CHECK-NEXT: return %5
  %0 = call @outer(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = "stablehlo.if"(%arg1) ({
    %4 = func.call @outer(%0) : (tensor<8xf32>) -> tensor<8xf32>
    stablehlo.return %4 : tensor<8xf32>
  }, {
    stablehlo.return %0 : tensor<8xf32>
  }) : (tensor<i1>) -> tensor<8xf32>
  %2 = call @kept(%1) : (tensor<8xf32>) -> tensor<8xf32>
  %3 = call @recursive(%2) : (tensor<8xf32>) -> tensor<8xf32>
  return %3 : tensor<8xf32>
}

// CHECK-NOT: func private @outer
func.func private @outer(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.negate %arg0 : tensor<8xf32>
  %1 = call @inner(%0) : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// CHECK-NOT: func private @inner
func.func private @inner(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.abs %arg0 : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK-LABEL: func.func private @kept
func.func private @kept(%arg0: tensor<8xf32>) -> tensor<8xf32> attributes {no_inline} {
  return %arg0 : tensor<8xf32>
}

// CHECK-LABEL: func.func private @recursive
func.func private @recursive(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: %0 = stablehlo.abs %arg0
  // CHECK-NEXT: %1 = call @recursive(%0)
  %0 = stablehlo.abs %arg0 : tensor<8xf32>
  %1 = call @recursive(%0) : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

sdy.mesh @mesh = <["x"=2]>

func.func @shardings(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // expected-warning @+1 {{inlining @sharded loses shardings; use sdy-import-func-calls to keep them}}
  %0 = call @sharded(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

func.func private @sharded(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.negate %arg0 : tensor<8xf32>
  return %0 : tensor<8xf32>
}
