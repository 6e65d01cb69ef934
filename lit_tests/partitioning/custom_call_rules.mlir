// RUN: sdy-opt %s -custom-call-rules=%S/rules/kernels.rules -sdy-propagation-pipeline -sdy-partition-pipeline -split-input-file | filecheck %s

sdy.mesh @mesh = <["x"=2, "y"=2]>

// Each device calls the target on its batches and heads; the operand layouts also apply to shards.
// CHECK-LABEL: func.func @passes_through
func.func @passes_through(%q: tensor<4x8x16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}, {}, {}]>},
    %k: tensor<4x8x64x32xf32>, %v: tensor<4x8x64x32xf32>) -> tensor<4x8x16x32xf32> {
  // CHECK-NOT:   stablehlo.all_gather
  // CHECK:       stablehlo.custom_call @flash_attention(%arg0, %arg1, %arg2)
  // CHECK-SAME:    backend_config = {scale = 5.000000e-01 : f32}
  // CHECK-SAME:    operand_layouts = [dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>]
  // CHECK-SAME:    output_operand_aliases = [#stablehlo.output_operand_alias
  // CHECK-SAME:    (tensor<2x4x16x32xf32>, tensor<2x4x64x32xf32>, tensor<2x4x64x32xf32>) -> tensor<2x4x16x32xf32>
  %0 = stablehlo.custom_call @flash_attention(%q, %k, %v) {
    api_version = 4 : i32,
    backend_config = {scale = 0.5 : f32},
    operand_layouts = [dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>],
    result_layouts = [dense<[3, 2, 1, 0]> : tensor<4xindex>],
    output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>]
  } : (tensor<4x8x16x32xf32>, tensor<4x8x64x32xf32>, tensor<4x8x64x32xf32>) -> tensor<4x8x16x32xf32>
  return %0 : tensor<4x8x16x32xf32>
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2]>

// Only the dimension that needs replication is gathered.
// CHECK-LABEL: func.func @needed_whole
func.func @needed_whole(%q: tensor<4x8x16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}, {"y"}, {}]>},
    %k: tensor<4x8x64x32xf32>, %v: tensor<4x8x64x32xf32>) -> tensor<4x8x16x32xf32> {
  // CHECK:       %[[WHOLE:.*]] = "stablehlo.all_gather"(%arg0)
  // CHECK-SAME:    all_gather_dim = 2
  // CHECK-SAME:    (tensor<2x8x8x32xf32>) -> tensor<2x8x16x32xf32>
  // CHECK:       stablehlo.custom_call @flash_attention(%[[WHOLE]], %arg1, %arg2)
  %0 = stablehlo.custom_call @flash_attention(%q, %k, %v) : (tensor<4x8x16x32xf32>, tensor<4x8x64x32xf32>, tensor<4x8x64x32xf32>) -> tensor<4x8x16x32xf32>
  return %0 : tensor<4x8x16x32xf32>
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2]>

// Both results are all-reduced over the axis of the reduction factor.
// CHECK-LABEL: func.func @reduced
func.func @reduced(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
    %b: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) -> (tensor<8x32xf32>, tensor<8xf32>) {
  // CHECK:       %[[PARTIAL:.*]]:2 = stablehlo.custom_call @kernels.project(%arg0, %arg1)
  // CHECK-SAME:    (tensor<4x8xf32>, tensor<8x32xf32>) -> (tensor<4x32xf32>, tensor<4xf32>)
  // CHECK-DAG:   "stablehlo.all_reduce"(%[[PARTIAL]]#0)
  // CHECK-DAG:   "stablehlo.all_reduce"(%[[PARTIAL]]#1)
  %0:2 = stablehlo.custom_call @kernels.project(%a, %b) : (tensor<8x16xf32>, tensor<16x32xf32>) -> (tensor<8x32xf32>, tensor<8xf32>)
  return %0#0, %0#1 : tensor<8x32xf32>, tensor<8xf32>
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2]>

// CHECK-LABEL: func.func @of_any_rank
func.func @of_any_rank(%a: tensor<8x4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}, {}]>},
    %b: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<8x4x6xf32>, tensor<8x6xf32>) {
  // CHECK:       stablehlo.custom_call @"a call of words"(%arg0)
  // CHECK-SAME:    (tensor<4x2x6xf32>) -> tensor<4x2x6xf32>
  // CHECK:       stablehlo.custom_call @"a call of words"(%arg1)
  // CHECK-SAME:    (tensor<4x6xf32>) -> tensor<4x6xf32>
  %0 = stablehlo.custom_call @"a call of words"(%a) : (tensor<8x4x6xf32>) -> tensor<8x4x6xf32>
  %1 = stablehlo.custom_call @"a call of words"(%b) : (tensor<8x6xf32>) -> tensor<8x6xf32>
  return %0, %1 : tensor<8x4x6xf32>, tensor<8x6xf32>
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2]>

// CHECK-LABEL: func.func @flattened
func.func @flattened(%a: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<48xf32> {
  // CHECK:       stablehlo.custom_call @kernels.flatten(%arg0)
  // CHECK-SAME:    (tensor<4x6xf32>) -> tensor<24xf32>
  %0 = stablehlo.custom_call @kernels.flatten(%a) : (tensor<8x6xf32>) -> tensor<48xf32>
  return %0 : tensor<48xf32>
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2]>

// Uneven rows are padded, so that each call has the same local shape.
// CHECK-LABEL: func.func @uneven
func.func @uneven(%a: tensor<7x6xf32>) -> tensor<7x6xf32> {
  // CHECK:       stablehlo.custom_call @"a call of words"
  // CHECK-SAME:    (tensor<4x6xf32>) -> tensor<4x6xf32>
  %0 = stablehlo.negate %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<7x6xf32>
  %1 = stablehlo.custom_call @"a call of words"(%0) : (tensor<7x6xf32>) -> tensor<7x6xf32>
  return %1 : tensor<7x6xf32>
}
