// RUN: sdy-opt %s -sdy-reshard-to-collectives | filecheck %s
// RUN: sdy-opt %s -sdy-reshard-to-collectives='keep-redundant-reshards=true' | filecheck %s --check-prefix=KEEP
// RUN: sdy-opt %s -sdy-reshard-to-collectives='least-communication=true' | filecheck %s --check-prefix=LEAST

sdy.mesh @mesh = <["x"=2, "y"=2, "z"=2]>
sdy.mesh @other_order = <["x"=2, "y"=2, "z"=2], device_ids=[1, 0, 3, 2, 5, 4, 7, 6]>

// CHECK-LABEL: func.func @gather
func.func @gather(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {"z"}]>}) -> tensor<8x8xf32> {
  // CHECK-NEXT: sdy.all_gather [{"y"}, {"z"}] %arg0 out_sharding=<@mesh, [{"x"}, {}]>
  // CHECK-NEXT: return
  %0 = sdy.reshard %arg0 <@mesh, [{"x"}, {}]> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// CHECK-LABEL: func.func @slice
func.func @slice(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // CHECK-NEXT: sdy.all_slice [{}, {"x", "y"}] %arg0 out_sharding=<@mesh, [{}, {"x", "y"}]>
  // CHECK-NEXT: return
  %0 = sdy.reshard %arg0 <@mesh, [{}, {"x", "y"}]> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// CHECK-LABEL: func.func @move
func.func @move(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>}) -> tensor<8x8xf32> {
  // CHECK-NEXT: sdy.all_to_all [{"y"}: 0->1] %arg0 out_sharding=<@mesh, [{"x"}, {"y"}]>
  // CHECK-NEXT: return
  %0 = sdy.reshard %arg0 <@mesh, [{"x"}, {"y"}]> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// An axis is replaced by another axis of the same size.
// CHECK-LABEL: func.func @permute
func.func @permute(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x8xf32> {
  // CHECK-NEXT: sdy.collective_permute %arg0 out_sharding=<@mesh, [{"y"}, {}]>
  // CHECK-NEXT: return
  %0 = sdy.reshard %arg0 <@mesh, [{"y"}, {}]> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// The tensor is sliced before any communication, and "y" is sliced in the source dimension of the all-to-all.
// CHECK-LABEL: func.func @slice_then_move
func.func @slice_then_move(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x8xf32> {
  // CHECK-NEXT: %[[SLICE:.*]] = sdy.all_slice [{"y"}, {}] %arg0 out_sharding=<@mesh, [{"x", "y"}, {}]>
  // CHECK-NEXT: sdy.all_to_all [{"x", "y"}: 0->1] %[[SLICE]] out_sharding=<@mesh, [{}, {"x", "y"}]>
  // CHECK-NEXT: return
  %0 = sdy.reshard %arg0 <@mesh, [{}, {"x", "y"}]> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// CHECK-LABEL: func.func @swap_and_gather
func.func @swap_and_gather(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>}) -> tensor<8x8xf32> {
  // CHECK-NEXT: %[[SLICE:.*]] = sdy.all_slice [{}, {"z"}] %arg0 out_sharding=<@mesh, [{"x", "y"}, {"z"}]>
  // CHECK-NEXT: %[[SWAP:.*]] = sdy.collective_permute %[[SLICE]] out_sharding=<@mesh, [{"y", "x"}, {"z"}]>
  // CHECK-NEXT: sdy.all_gather [{"x"}, {}] %[[SWAP]] out_sharding=<@mesh, [{"y"}, {"z"}]>
  // CHECK-NEXT: return
  %0 = sdy.reshard %arg0 <@mesh, [{"y"}, {"z"}]> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// CHECK-LABEL: func.func @other_devices
func.func @other_devices(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x8xf32> {
  // CHECK-NEXT: sdy.collective_permute %arg0 out_sharding=<@other_order, [{"x"}, {}]>
  // CHECK-NEXT: return
  %0 = sdy.reshard %arg0 <@other_order, [{"x"}, {}]> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// CHECK-LABEL: func.func @same
// KEEP-LABEL:  func.func @same
func.func @same(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x8xf32> {
  // CHECK-NEXT: return %arg0
  // KEEP-NEXT:  sdy.reshard %arg0 <@mesh, [{"x"}, {}]>
  %0 = sdy.reshard %arg0 <@mesh, [{"x"}, {}]> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// With Shardy's slice of "y", then "x", two of eight devices keep their shard in the permute; with this one, four do.
// CHECK-LABEL: func.func @slice_and_permute
// LEAST-LABEL: func.func @slice_and_permute
func.func @slice_and_permute(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z"}, {}]>}) -> tensor<8x8xf32> {
  // CHECK-NEXT: %[[SLICE:.*]] = sdy.all_slice [{"y"}, {"x"}] %arg0 out_sharding=<@mesh, [{"z", "y"}, {"x"}]>
  // CHECK-NEXT: sdy.collective_permute %[[SLICE]] out_sharding=<@mesh, [{"y", "x"}, {"z"}]>
  // LEAST-NEXT: %[[SLICE:.*]] = sdy.all_slice [{"x"}, {"y"}] %arg0 out_sharding=<@mesh, [{"z", "x"}, {"y"}]>
  // LEAST-NEXT: sdy.collective_permute %[[SLICE]] out_sharding=<@mesh, [{"y", "x"}, {"z"}]>
  %0 = sdy.reshard %arg0 <@mesh, [{"y", "x"}, {"z"}]> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// One all-to-all moves both axes, where Shardy first permutes them so that "x" stays.
// LEAST-LABEL: func.func @move_then_gather
func.func @move_then_gather(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z", "y", "x"}, {}]>}) -> tensor<8x8xf32> {
  // LEAST-NEXT: %[[MOVE:.*]] = sdy.all_to_all [{"y", "x"}: 0->1] %arg0 out_sharding=<@mesh, [{"z"}, {"y", "x"}]>
  // LEAST-NEXT: sdy.all_gather [{"z"}, {"x"}] %[[MOVE]] out_sharding=<@mesh, [{}, {"y"}]>
  %0 = sdy.reshard %arg0 <@mesh, [{}, {"y"}]> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// Each device computes its shard of an iota, without communication.
// LEAST-LABEL: func.func @make_anew
func.func @make_anew(%arg0: tensor<8x8xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}, %arg1: tensor<i32>)
    -> (tensor<8x8xi32>, tensor<8x8xi32>) {
  %0 = stablehlo.iota dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<8x8xi32>
  %1 = stablehlo.broadcast_in_dim %arg1, dims = [] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<i32>) -> tensor<8x8xi32>
  %2 = stablehlo.add %0, %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<8x8xi32>
  %3 = stablehlo.add %0, %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<8x8xi32>
  // LEAST:      %[[IOTA:.*]] = stablehlo.iota dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>}
  // LEAST-NEXT: %[[SCALAR:.*]] = stablehlo.broadcast_in_dim %arg1, dims = [] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>}
  // LEAST-NEXT: %[[SUM:.*]] = stablehlo.add %[[IOTA]], %[[SCALAR]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>}
  %4 = sdy.reshard %2 <@mesh, [{}, {}]> : tensor<8x8xi32>
  // LEAST-NEXT: %[[SENT:.*]] = sdy.all_gather
  // LEAST-NEXT: return %[[SUM]], %[[SENT]]
  %5 = sdy.reshard %3 <@mesh, [{}, {}]> : tensor<8x8xi32>
  return %4, %5 : tensor<8x8xi32>, tensor<8x8xi32>
}

// LEAST-LABEL: func.func @use_again
func.func @use_again(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<8xf32>, tensor<8xf32>) {
  // LEAST-NEXT: %[[WHOLE:.*]] = sdy.all_gather [{"x"}] %arg0
  // LEAST-NEXT: return %[[WHOLE]], %[[WHOLE]]
  %0 = sdy.reshard %arg0 <@mesh, [{}]> : tensor<8xf32>
  %1 = sdy.reshard %arg0 <@mesh, [{}]> : tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

// A copy that is gathered already is sliced, where a reshard of the value itself would permute its shards.
// LEAST-LABEL: func.func @slice_copy
func.func @slice_copy(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<8xf32>, tensor<8xf32>) {
  // LEAST-NEXT: %[[COPY:.*]] = sdy.all_gather [{"x"}] %arg0
  // LEAST-NEXT: %[[SLICE:.*]] = sdy.all_slice [{"y"}] %[[COPY]] out_sharding=<@mesh, [{"y"}]>
  // LEAST-NEXT: return %[[COPY]], %[[SLICE]]
  %0 = sdy.reshard %arg0 <@mesh, [{}]> : tensor<8xf32>
  %1 = sdy.reshard %arg0 <@mesh, [{"y"}]> : tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

// A copy on a mesh with another order of devices is not used.
// LEAST-LABEL: func.func @copy_in_other_order
func.func @copy_in_other_order(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}]>}) -> (tensor<8xf32>, tensor<8xf32>) {
  // LEAST-NEXT: %[[COPY:.*]] = sdy.collective_permute %arg0 out_sharding=<@other_order, [{"x", "y"}]>
  // LEAST-NEXT: %[[GATHER:.*]] = sdy.all_gather [{"x", "y"}] %arg0
  // LEAST-NEXT: return %[[COPY]], %[[GATHER]]
  %0 = sdy.reshard %arg0 <@other_order, [{"x", "y"}]> : tensor<8xf32>
  %1 = sdy.reshard %arg0 <@mesh, [{}]> : tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

// A value is resharded before it is cast to a wider type, scaled by a constant and transposed.
// LEAST-LABEL: func.func @cast_after_gather
func.func @cast_after_gather(%arg0: tensor<8x4xi8> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<4x8xf32> {
  // LEAST:      %[[GATHERED:.*]] = sdy.all_gather [{"x"}, {}] %arg0 out_sharding=<@mesh, [{}, {}]> : tensor<8x4xi8>
  // LEAST-NEXT: %[[CAST:.*]] = stablehlo.convert %[[GATHERED]] {{.*}} : (tensor<8x4xi8>) -> tensor<8x4xf32>
  // LEAST-NEXT: %[[TWO:.*]] = stablehlo.constant {{.*}} : tensor<8x4xf32>
  // LEAST-NEXT: %[[SCALED:.*]] = stablehlo.multiply %[[CAST]], %[[TWO]]
  // LEAST-NEXT: %[[TRANSPOSED:.*]] = stablehlo.transpose %[[SCALED]]
  // LEAST-NEXT: return %[[TRANSPOSED]]
  %0 = stablehlo.convert %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<8x4xi8>) -> tensor<8x4xf32>
  %1 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} dense<2.0> : tensor<8x4xf32>
  %2 = stablehlo.multiply %0, %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<8x4xf32>
  %3 = stablehlo.transpose %2, dims = [1, 0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %4 = sdy.reshard %3 <@mesh, [{}, {}]> : tensor<4x8xf32>
  return %4 : tensor<4x8xf32>
}

// A value is resharded itself if its operands are not cheaper to reshard.
// LEAST-LABEL: func.func @cast_before_gather
func.func @cast_before_gather(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<8xi8>, tensor<8xf32>) {
  // LEAST-NEXT: %[[CAST:.*]] = stablehlo.convert %arg0
  // LEAST-NEXT: %[[TANH:.*]] = stablehlo.tanh %arg0
  // LEAST-NEXT: sdy.all_gather [{"x"}] %[[CAST]]
  // LEAST-NEXT: sdy.all_gather [{"x"}] %[[TANH]]
  %0 = stablehlo.convert %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<8xi8>
  %1 = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
  %2 = sdy.reshard %0 <@mesh, [{}]> : tensor<8xi8>
  %3 = sdy.reshard %1 <@mesh, [{}]> : tensor<8xf32>
  return %2, %3 : tensor<8xi8>, tensor<8xf32>
}

// All devices hold the operand of the slice.
// LEAST-LABEL: func.func @slice_before_gather
func.func @slice_before_gather(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // LEAST-NOT:  sdy.all_gather
  // LEAST:      %[[TANH:.*]] = stablehlo.tanh %arg0 {{.*}}<@mesh, [{}]>
  // LEAST-NEXT: return %[[TANH]]
  %0 = sdy.reshard %arg0 <@mesh, [{"x"}]> : tensor<8xf32>
  %1 = stablehlo.tanh %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
  %2 = sdy.reshard %1 <@mesh, [{}]> : tensor<8xf32>
  return %2 : tensor<8xf32>
}

// Collectives start from the value before a barrier; a reshard between replicated shardings returns its own input.
// CHECK-LABEL: func.func @behind_barriers
func.func @behind_barriers(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %arg1: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK-NEXT: sdy.propagation_barrier %arg0
  // CHECK-NEXT: %[[KEPT:.*]] = sdy.propagation_barrier %arg1
  // CHECK-NEXT: %[[GATHERED:.*]] = sdy.all_gather [{"x"}] %arg0
  // CHECK-NEXT: return %[[GATHERED]], %[[KEPT]]
  %0 = sdy.propagation_barrier %arg0 allowed_direction=NONE : tensor<8xf32>
  %1 = sdy.propagation_barrier %arg1 allowed_direction=NONE : tensor<8xf32>
  %2 = sdy.reshard %0 <@mesh, [{}]> : tensor<8xf32>
  %3 = sdy.reshard %1 <@mesh, [{}]> : tensor<8xf32>
  return %2, %3 : tensor<8xf32>, tensor<8xf32>
}
