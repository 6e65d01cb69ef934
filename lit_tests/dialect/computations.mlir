// RUN: sdy-opt %s | filecheck %s
// RUN: sdy-opt %s --mlir-print-op-generic | sdy-opt | filecheck %s

sdy.mesh @mesh = <["x"=4, "y"=2]>

// CHECK-LABEL: func.func @manual
func.func @manual(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // CHECK-NEXT: %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x", "y"}, {?}]>] out_shardings=[<@mesh, [{"x", ?}, {}], replicated={"y"}>] manual_axes={"x"} (%arg1: tensor<2x8xf32>) {
  // CHECK-NEXT:   %1 = stablehlo.negate %arg1 : tensor<2x8xf32>
  // CHECK-NEXT:   sdy.return %1 : tensor<2x8xf32>
  // CHECK-NEXT: } {note = "by hand"} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %0 = sdy.manual_computation(%arg0)
      in_shardings=[<@mesh, [{"x", "y"}, {?}]>] out_shardings=[<@mesh, [{"x", ?}, {}], replicated={"y"}>]
      manual_axes={"x"} (%arg1: tensor<2x8xf32>) {
    %1 = stablehlo.negate %arg1 : tensor<2x8xf32>
    sdy.return %1 : tensor<2x8xf32>
  } {note = "by hand"} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  // CHECK-NEXT: sdy.manual_computation() in_shardings=[] out_shardings=[] manual_axes={} () {
  // CHECK-NEXT:   sdy.return
  // CHECK-NEXT: } : () -> ()
  sdy.manual_computation() in_shardings=[] out_shardings=[] manual_axes={} () {
    sdy.return
  } : () -> ()
  return %0 : tensor<8x8xf32>
}

// CHECK-LABEL: func.func @named
func.func @named(%arg0: tensor<8xf32>, %arg1: tensor<4xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: %0:2 = sdy.named_computation<"swap">(%arg0, %arg1) in_shardings=[<@mesh, [{"x"}]>, <@mesh, [{?}]>] (%arg2: tensor<8xf32>, %arg3: tensor<4xf32>) {
  // CHECK-NEXT:   sdy.return %arg3, %arg2 : tensor<4xf32>, tensor<8xf32>
  // CHECK-NEXT: } : (tensor<8xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<8xf32>)
  %0:2 = sdy.named_computation<"swap">(%arg0, %arg1) in_shardings=[<@mesh, [{"x"}]>, <@mesh, [{?}]>]
      (%arg2: tensor<8xf32>, %arg3: tensor<4xf32>) {
    sdy.return %arg3, %arg2 : tensor<4xf32>, tensor<8xf32>
  } : (tensor<8xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<8xf32>)
  // CHECK-NEXT: %1 = sdy.named_computation<"same">(%0#1) out_shardings=[<@mesh, [{"y"}]>] (%arg2: tensor<8xf32>) {
  %1 = sdy.named_computation<"same">(%0#1) out_shardings=[<@mesh, [{"y"}]>] (%arg2: tensor<8xf32>) {
    sdy.return %arg2 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  // CHECK:      %2 = sdy.data_flow_edge %1 sharding=<@mesh, [{"y", ?}]> : tensor<8xf32>
  %2 = sdy.data_flow_edge %1 sharding=<@mesh, [{"y", ?}]> : tensor<8xf32>
  // CHECK-NEXT: %3 = call @named
  %3 = call @named(%2, %arg1) : (tensor<8xf32>, tensor<4xf32>) -> tensor<8xf32>
  // CHECK-NEXT: %4 = sdy.func_data_flow_edge %3 : tensor<8xf32>
  %4 = sdy.func_data_flow_edge %3 : tensor<8xf32>
  return %4 : tensor<8xf32>
}
