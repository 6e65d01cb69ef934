// RUN: sdy-opt %s -sdy-import-func-calls | filecheck %s
// RUN: sdy-opt %s -sdy-import-func-calls='add-data-flow-edges-on-named-computations=false' | filecheck %s --check-prefix=PLAIN

sdy.mesh @mesh = <["x"=2]>

// CHECK-LABEL: func.func @main
// PLAIN-LABEL: func.func @main
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: %[[NC:.*]] = sdy.named_computation<"f">(%arg0) in_shardings=[<@mesh, [{?}]>] out_shardings=[<@mesh, [{"x"}]>] (%arg1: tensor<8xf32>) {
  // CHECK-NEXT:   %[[IN:.*]] = sdy.data_flow_edge %arg1 sharding=<@mesh, [{?}]> : tensor<8xf32>
  // CHECK-NEXT:   %[[NEG:.*]] = stablehlo.negate %[[IN]] : tensor<8xf32>
  // CHECK-NEXT:   sdy.return %[[NEG]] : tensor<8xf32>
  // CHECK-NEXT: } {mhlo.tag = "kept"} : (tensor<8xf32>) -> tensor<8xf32>
  // CHECK-NEXT: %[[OUT:.*]] = sdy.data_flow_edge %[[NC]] sharding=<@mesh, [{"x"}]> : tensor<8xf32>
  // CHECK-NEXT: return %[[OUT]]
  // PLAIN-NEXT: %[[NC:.*]] = sdy.named_computation<"f">(%arg0)
  // PLAIN-NEXT:   %[[NEG:.*]] = stablehlo.negate %arg1
  // PLAIN-NEXT:   sdy.return %[[NEG]]
  // PLAIN-NEXT: }
  // PLAIN-NEXT: return %[[NC]]
  %0 = call @f(%arg0) {mhlo.tag = "kept", sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
      : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK-NOT: func.func
func.func private @f(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}]>}) -> tensor<8xf32> {
  %0 = stablehlo.negate %arg0 : tensor<8xf32>
  return %0 : tensor<8xf32>
}
