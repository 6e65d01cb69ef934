// RUN: sdy-opt %s -sdy-export-named-computations | filecheck %s

sdy.mesh @mesh = <["x"=2]>

// CHECK-LABEL: func.func @main
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: %0 = call @outer(%arg0) {mhlo.tag = "kept", sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  // CHECK-NEXT: %1 = call @inner_0(%0) : (tensor<8xf32>) -> tensor<8xf32>
  // CHECK-NEXT: return %1
  %0 = sdy.named_computation<"outer">(%arg0) (%arg1: tensor<8xf32>) {
    %3 = sdy.data_flow_edge %arg1 sharding=<@mesh, [{"x", ?}]> : tensor<8xf32>
    %4 = sdy.named_computation<"inner">(%3) (%arg2: tensor<8xf32>) {
      %5 = stablehlo.negate %arg2 : tensor<8xf32>
      sdy.return %5 : tensor<8xf32>
    } : (tensor<8xf32>) -> tensor<8xf32>
    sdy.return %4 : tensor<8xf32>
  } {mhlo.tag = "kept"} : (tensor<8xf32>) -> tensor<8xf32>
  %1 = sdy.data_flow_edge %0 sharding=<@mesh, [{"x"}]> : tensor<8xf32>
  %2 = sdy.named_computation<"inner">(%1) (%arg1: tensor<8xf32>) {
    sdy.return %arg1 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}

// CHECK:      func.func private @inner(%arg0: tensor<8xf32>) -> tensor<8xf32> attributes {sdy.original_func_name = "inner"} {
// CHECK-NEXT:   stablehlo.negate %arg0
// CHECK:      func.func private @outer(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}]>}) -> tensor<8xf32> attributes {sdy.original_func_name = "outer"} {
// CHECK-NEXT:   call @inner(%arg0)
// CHECK:      func.func private @inner_0(%arg0: tensor<8xf32>) -> tensor<8xf32> attributes {sdy.original_func_name = "inner"} {
// CHECK-NEXT:   return %arg0
