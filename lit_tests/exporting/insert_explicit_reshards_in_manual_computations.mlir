// RUN: sdy-opt %s -sdy-insert-explicit-reshards="enable-full-version=true least-communication=true" | filecheck %s

sdy.mesh @mesh = <["x"=2, "y"=2, "z"=2]>

// The right operand is gathered along "x". No value is sharded along "y" and "z", so devices that differ along these
// gather different columns.
// CHECK-LABEL: func.func @free_axes
func.func @free_axes(
    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  // CHECK-NEXT: %[[COLUMNS:.*]] = sdy.reshard %arg1 <@mesh, [{}, {"y", "z"}]>
  // CHECK-NEXT: stablehlo.dot %arg0, %[[COLUMNS]] {{.*}}[{"x"}, {"y", "z"}]
  %0 = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}
    : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// "y" is a manual axis: along it, devices have different tensors.
// CHECK-LABEL: func.func @manual_axis
func.func @manual_axis(
    %arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x"}, {}]>},
    %arg1: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x"}, {}]>})
    -> (tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x"}, {}]>}) {
  // CHECK:      %[[COLUMNS:.*]] = sdy.reshard %arg3 <@mesh, [{}, {"z"}]>
  // CHECK-NEXT: stablehlo.dot %arg2, %[[COLUMNS]] {{.*}}[{"x"}, {"z"}]
  %0 = sdy.manual_computation(%arg0, %arg1)
      in_shardings=[<@mesh, [{"y", "x"}, {}]>, <@mesh, [{"y", "x"}, {}]>] out_shardings=[<@mesh, [{"y", "x"}, {}]>]
      manual_axes={"y"} (%arg2: tensor<8x8xf32>, %arg3: tensor<8x8xf32>) {
    %1 = stablehlo.dot %arg2, %arg3 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}
      : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    sdy.return %1 : tensor<8x8xf32>
  } : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
  return %0 : tensor<16x8xf32>
}

// "y" and "z" are manual where the function is called.
// CHECK-LABEL: func.func @manual_axes_of_a_caller
func.func @manual_axes_of_a_caller(
    %arg0: tensor<32x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "z", "x"}, {}]>})
    -> (tensor<32x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "z", "x"}, {}]>}) {
  %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"y", "z", "x"}, {}]>]
      out_shardings=[<@mesh, [{"y", "z", "x"}, {}]>] manual_axes={"y", "z"} (%arg1: tensor<8x8xf32>) {
    %1 = func.call @called(%arg1) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}
      : (tensor<8x8xf32>) -> tensor<8x8xf32>
    sdy.return %1 : tensor<8x8xf32>
  } : (tensor<32x8xf32>) -> tensor<32x8xf32>
  return %0 : tensor<32x8xf32>
}

// CHECK-LABEL: func.func private @called
func.func private @called(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  // CHECK-NEXT: %[[WHOLE:.*]] = sdy.reshard %arg0 <@mesh, [{}, {}]>
  // CHECK-NEXT: stablehlo.dot %arg0, %[[WHOLE]] {{.*}}[{"x"}, {}]
  %0 = stablehlo.dot %arg0, %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}
    : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
