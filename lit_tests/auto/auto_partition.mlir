// RUN: sdy-opt %s --sdy-auto-partition='hardware=tpu-v5p' | filecheck %s
// RUN: not sdy-opt %s --sdy-auto-partition='hardware=tpu-v5p memory=1M' 2>&1 | filecheck %s --check-prefix=LITTLE
// RUN: not sdy-opt %s --sdy-auto-partition='memory=much' 2>&1 | filecheck %s --check-prefix=SIZE

sdy.mesh @mesh = <["data"=8]>

// LITTLE: error: found no layout that fits into 1,048,576 bytes: the best one needs {{[0-9,]+}} bytes per device
// SIZE: error: 'much' is not a size: bytes, or a number with K, M, G or T

// The batch is large, so that its rows are sharded; existing shardings are kept.
// CHECK: func.func @main(%arg0: tensor<65536x4096xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>},
// CHECK-SAME: %arg1: tensor<4096x4096xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>},
// CHECK-SAME: %arg2: tensor<4096xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>})
func.func @main(%x: tensor<65536x4096xf32>, %w: tensor<4096x4096xf32>,
    %b: tensor<4096xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> tensor<65536x4096xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<65536x4096xf32>, tensor<4096x4096xf32>) -> tensor<65536x4096xf32>
  %1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<4096xf32>) -> tensor<65536x4096xf32>
  %2 = stablehlo.add %0, %1 : tensor<65536x4096xf32>
  return %2 : tensor<65536x4096xf32>
}
