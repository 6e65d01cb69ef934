// RUN: sdy-opt %s -sdy-insert-explicit-reshards=enable-full-version=true -verify-diagnostics | filecheck %s

sdy.mesh @mesh = <["x"=2, "y"=2]>
sdy.mesh @one_device = <[], device_ids=[1]>

// Memoized results apply only to operations with the same rule, not to all of a class with the same shardings.
// CHECK-LABEL: func.func @same_class_and_shardings
func.func @same_class_and_shardings(%arg0: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  // CHECK-NEXT: %0 = stablehlo.reverse %arg0, dims = [1]
  %0 = stablehlo.reverse %arg0, dims = [1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<4x4xf32>
  // CHECK-NEXT: %1 = stablehlo.reverse %0, dims = [1]
  %1 = stablehlo.reverse %0, dims = [1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<4x4xf32>
  // CHECK-NEXT: %2 = stablehlo.transpose %1, dims = [0, 1]
  %2 = stablehlo.transpose %1, dims = [0, 1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK-NEXT: %3 = stablehlo.transpose %2, dims = [1, 0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>}
  // CHECK-NEXT: %4 = sdy.reshard %3 <@mesh, [{"x"}, {}]>
  %3 = stablehlo.transpose %2, dims = [1, 0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK-NEXT: return %4
  return %3 : tensor<4x4xf32>
}

// Single-device operations need no rule, so there is no warning about a missing one.
// CHECK-LABEL: func.func @on_one_device
func.func @on_one_device(%arg0: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  // CHECK: stablehlo.custom_call @no_such_target
  %0 = stablehlo.custom_call @no_such_target(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@one_device, []>]>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return
}
