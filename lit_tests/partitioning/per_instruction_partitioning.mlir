// RUN: sdy-opt %s -sdy-per-instruction-partitioning='filter=negate' -verify-diagnostics | filecheck %s
// RUN: sdy-opt %s -sdy-per-instruction-partitioning='filter="selectLow=1, selectHigh=1"' | filecheck %s --check-prefix=SECOND
// RUN: sdy-opt %s -sdy-export-pipeline='enable-per-instruction-partitioning=true per-instruction-partitioning-filter=exponential inline-meshes=false' | filecheck %s --check-prefix=PIPELINE

sdy.mesh @mesh = <["x"=2]>

// CHECK-LABEL:  func.func @main
// SECOND-LABEL: func.func @main
// PIPELINE-LABEL: func.func @main
func.func @main(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
    -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // CHECK:         %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%arg1: tensor<2xf32>) {
  // CHECK-NEXT:      %2 = stablehlo.negate %arg1 : tensor<2xf32>
  // CHECK-NEXT:      sdy.return %2
  // SECOND:        %0 = stablehlo.negate
  // PIPELINE:      %0 = stablehlo.negate
  %0 = stablehlo.negate %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<4xf32>
  // CHECK:         %1 = stablehlo.exponential %0
  // SECOND:        sdy.manual_computation(%0)
  // SECOND-NEXT:     stablehlo.exponential
  // PIPELINE:      sdy.manual_computation(%0)
  // PIPELINE-NEXT:   stablehlo.exponential
  %1 = stablehlo.exponential %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// An uneven dimension is padded around the manual computation.
// CHECK-LABEL:  func.func private @uneven
func.func private @uneven(%arg0: tensor<3xf32>) {
  // CHECK:         %0 = sdy.reshard
  %0 = sdy.reshard %arg0 <@mesh, [{"x"}]> : tensor<3xf32>
  // CHECK:         %1 = stablehlo.pad %0, %{{.*}}, low = [0], high = [1], interior = [0]
  // CHECK:         %2 = sdy.manual_computation(%1)
  // CHECK-SAME:      (%arg1: tensor<2xf32>)
  // CHECK:         stablehlo.slice %2 [0:3]
  %1 = stablehlo.negate %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<3xf32>
  return
}
