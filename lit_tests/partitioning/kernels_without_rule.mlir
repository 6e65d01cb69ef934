// RUN: sdy-opt %s -split-input-file -sdy-propagation-pipeline -sdy-partition-pipeline 2>&1 | filecheck %s
// RUN: not sdy-opt %s -split-input-file -sdy-propagation-pipeline -sdy-convert-global-to-local 2>&1 | filecheck %s --check-prefix=REFUSED

// Pallas kernels as lowered by jax 0.10 for TPUs, and by Mosaic and Triton for GPUs, with the kernels' code removed.
// Each warning names the kernel, its line, the bytes that replication costs a device, and the rule to write.

// CHECK:      model.py:6:11: warning: 'stablehlo.custom_call' op @tpu_custom_call (kernel 'add_two') is replicated on every device: it has no sharding rule (each device receives 6,144 bytes more)
// CHECK-NEXT: model.py:6:11: note: write @sdy.register_op("a^ b^, a^ b^ -> a^ b^, 1") above the function that calls it, and remove the ^ of the dimensions that can be sharded (dimensions of equal size share a name)
// CHECK:      model.py:9:13: warning: 'stablehlo.custom_call' op @mosaic_gpu_v2 (kernel 'scaled') is replicated on every device: it has no sharding rule
// CHECK-NEXT: model.py:9:13: note: write @sdy.register_op("a^ b^, c^ d^ -> c^ d^ a^") above the function that calls it
// CHECK:      warning: 'stablehlo.custom_call' op @mosaic_gpu_v2 is replicated on every device
// CHECK:      warning: 'stablehlo.custom_call' op @__gpu$xla.gpu.triton (kernel 'softmax') is replicated on every device
// CHECK:      warning: 'stablehlo.custom_call' op @flash_attention is replicated on every device: it has no sharding rule (each device receives 6,144 bytes more)
// CHECK:      note: write `flash_attention: a b, b c -> a b need_replication={a, b, c} blocked_propagation={a, b, c}` in a file for --custom-call-rules, or pass it to sdy.rules.annotate("@flash_attention", ...), and remove from the braces the dimensions that can be sharded (dimensions of equal size share a name)

// CHECK:      warning: 'stablehlo.custom_call' op @my_scan is replicated along the dimensions that its axes do not divide
// CHECK:      note: write `my_scan: a -> a need_replication={a} blocked_propagation={a}` in a file for --custom-call-rules

// REFUSED:      model.py:6:11: error: 'stablehlo.custom_call' op @tpu_custom_call (kernel 'add_two') cannot be partitioned: it has no sharding rule
// REFUSED-NEXT: model.py:6:11: note: write @sdy.register_op("a^ b^, a^ b^ -> a^ b^, 1") above the function that calls it

sdy.mesh @mesh = <["x"=4]>

func.func @main(%x: tensor<16x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %y: tensor<16x128xf32>,
    %w: tensor<128x128xf32>, %p: tensor<32x8xf32>) -> (tensor<16x128xf32>, tensor<f32>, tensor<32x8x16xf32>, tensor<16x128xf32>, tensor<16x128xf32>, tensor<16x128xf32>) {
  %0:2 = stablehlo.custom_call @tpu_custom_call(%x, %y) {backend_config = "{}", kernel_name = "add_two", mhlo.frontend_attributes = {kernel_metadata = "{}"}} : (tensor<16x128xf32>, tensor<16x128xf32>) -> (tensor<16x128xf32>, tensor<f32>) loc(#tpu)
  %1 = stablehlo.custom_call @mosaic_gpu_v2(%x, %p) {backend_config = "", mhlo.backend_config = {kernel_hash = "\BC\88"}} : (tensor<16x128xf32>, tensor<32x8xf32>) -> tensor<32x8x16xf32> loc(#gpu)
  %2 = stablehlo.custom_call @mosaic_gpu_v2(%x) {backend_config = "", mhlo.backend_config = {kernel_hash = "\BC\88"}} : (tensor<16x128xf32>) -> tensor<16x128xf32> loc(#unnamed)
  %3 = stablehlo.custom_call @__gpu$xla.gpu.triton(%x) {backend_config = "", mhlo.backend_config = {debug = false, grid_x = 1 : i32, name = "softmax"}} : (tensor<16x128xf32>) -> tensor<16x128xf32>
  %4 = stablehlo.custom_call @flash_attention(%x, %w) : (tensor<16x128xf32>, tensor<128x128xf32>) -> tensor<16x128xf32>
  return %0#0, %0#1, %1, %2, %3, %4 : tensor<16x128xf32>, tensor<f32>, tensor<32x8x16xf32>, tensor<16x128xf32>, tensor<16x128xf32>, tensor<16x128xf32>
}
#tpu = loc("jit(step)/add_two/pallas_call"("model.py":6:11))
#gpu = loc("jit(step)/scaled/pallas_call"("model.py":9:13))
#unnamed = loc("jit(step)/pallas_call"("model.py":12:13))

// -----

sdy.mesh @mesh = <["x"=4]>

func.func @uneven(%x: tensor<10xf32>) -> tensor<10xf32> {
  %0 = stablehlo.negate %x {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<10xf32>
  %1 = stablehlo.custom_call @my_scan(%0) : (tensor<10xf32>) -> tensor<10xf32>
  return %1 : tensor<10xf32>
}
