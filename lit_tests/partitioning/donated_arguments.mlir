// RUN: sdy-opt %s -sdy-convert-global-to-local | filecheck %s
// RUN: sdy-opt %s -sdy-convert-global-to-local -sdy-plain | filecheck %s --check-prefix=PLAIN

// An argument stays aliased to its result if both have the same local type; otherwise it becomes a donated buffer.
// CHECK: func.func @main(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>, tf.aliasing_output = 0 : i32}, %arg1: tensor<4xf32> {jax.buffer_donor = true, sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})

// PLAIN:      module attributes {mhlo.num_partitions = 2 : i32} {
// PLAIN-NEXT: func.func @main(%arg0: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %arg1: tensor<4xf32> {jax.buffer_donor = true})
sdy.mesh @mesh = <["x"=2]>
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>, tf.aliasing_output = 0 : i32},
                %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>, tf.aliasing_output = 1 : i32})
    -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
  %0 = stablehlo.add %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
  %1 = sdy.all_gather [{"x"}] %arg1 out_sharding=<@mesh, [{}]> : tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}
