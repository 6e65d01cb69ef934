# ruff: noqa: E501
"""Operations that MLIR refuses, on the arguments that HEADER names; each is the text after `%0 = `."""

HEADER = """func.func @wrong(%a: tensor<4x8xf32>, %b: tensor<8x3xf32>, %s: tensor<f32>, %h: tensor<4x8xf16>,
                 %i: tensor<4xi32>, %p: tensor<4xi1>, %n: tensor<i32>, %t: tuple<tensor<f32>, tensor<i32>>) {
"""

REFUSED = r"""
stablehlo.add %a, %b : tensor<4x8xf32>
stablehlo.add %a, %s : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
stablehlo.add %a, %h : (tensor<4x8xf32>, tensor<4x8xf16>) -> tensor<4x8xf32>
stablehlo.add %a, %a : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x9xf32>
stablehlo.tanh %a : (tensor<4x8xf32>) -> tensor<4x9xf32>
stablehlo.tanh %i : tensor<4xi32>
stablehlo.convert %a : (tensor<4x8xf32>) -> tensor<4xf32>
stablehlo.compare LT, %a, %a : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4xi1>
stablehlo.compare LT, %a, %a : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi8>
stablehlo.select %i, %a, %a : tensor<4xi32>, tensor<4x8xf32>
stablehlo.select %p, %a, %a : tensor<4xi1>, tensor<4x8xf32>
stablehlo.clamp %a, %i, %a : (tensor<4x8xf32>, tensor<4xi32>, tensor<4x8xf32>) -> tensor<4xi32>
stablehlo.reshape %a : (tensor<4x8xf32>) -> tensor<31xf32>
stablehlo.reshape %a : (tensor<4x8xf32>) -> tensor<32xi32>
stablehlo.transpose %a, dims = [0, 0] : (tensor<4x8xf32>) -> tensor<4x8xf32>
stablehlo.transpose %a, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<4x8xf32>
stablehlo.transpose %a, dims = [1] : (tensor<4x8xf32>) -> tensor<4x8xf32>
stablehlo.broadcast_in_dim %a, dims = [0] : (tensor<4x8xf32>) -> tensor<4x8xf32>
stablehlo.broadcast_in_dim %a, dims = [0, 0] : (tensor<4x8xf32>) -> tensor<4x8xf32>
stablehlo.broadcast_in_dim %a, dims = [0, 2] : (tensor<4x8xf32>) -> tensor<4x8xf32>
stablehlo.broadcast_in_dim %a, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<4x8xf32>
stablehlo.broadcast_in_dim %a, dims = [0, 1] : (tensor<4x8xf32>) -> tensor<4x8xi32>
stablehlo.transpose %a, dims = [1, 99999999999999999999] : (tensor<4x8xf32>) -> tensor<8x4xf32>
stablehlo.transpose %a, dims = [1, -9223372036854775809] : (tensor<4x8xf32>) -> tensor<8x4xf32>
stablehlo.transpose %a, dims = [1, -9223372036854775808] : (tensor<4x8xf32>) -> tensor<8x4xf32>
stablehlo.slice %a [0:18446744073709551615, 0:8] : (tensor<4x8xf32>) -> tensor<4x8xf32>
stablehlo.convolution(%a, %b) dim_numbers = [b, 18446744073709551616, f]x[0, i, o]->[b, 0, f], window = {} : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x8xf32>
stablehlo.convolution(%a, %b) dim_numbers = [b, 12345, f]x[0, i, o]->[b, 0, f], window = {} : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x8xf32>
stablehlo.slice %a [0:5, 0:8] : (tensor<4x8xf32>) -> tensor<5x8xf32>
stablehlo.slice %a [0:4] : (tensor<4x8xf32>) -> tensor<4xf32>
stablehlo.slice %a [3:2, 0:8] : (tensor<4x8xf32>) -> tensor<1x8xf32>
stablehlo.slice %a [-1:2, 0:8] : (tensor<4x8xf32>) -> tensor<1x8xf32>
stablehlo.slice %a [0:2:0, 0:8] : (tensor<4x8xf32>) -> tensor<1x8xf32>
stablehlo.slice %a [0:2, 0:8] : (tensor<4x8xf32>) -> tensor<3x8xf32>
stablehlo.dynamic_slice %a, %n, %n, sizes = [5, 8] : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<5x8xf32>
stablehlo.dynamic_slice %a, %n, sizes = [4, 8] : (tensor<4x8xf32>, tensor<i32>) -> tensor<4x8xf32>
stablehlo.dynamic_update_slice %a, %a, %n : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<i32>) -> tensor<4x8xf32>
stablehlo.dynamic_update_slice %a, %b, %n, %n : (tensor<4x8xf32>, tensor<8x3xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
stablehlo.pad %a, %s, low = [0, 0], high = [0, 0], interior = [-1, 0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
stablehlo.pad %a, %s, low = [0], high = [0], interior = [0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
stablehlo.pad %a, %s, low = [1, 0], high = [0, 0], interior = [0, 0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
stablehlo.concatenate %a, %b, dim = 0 : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<12x8xf32>
stablehlo.concatenate %a, %a, dim = 2 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
stablehlo.concatenate %a, %a, dim = 0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
stablehlo.reverse %a, dims = [0, 0] : tensor<4x8xf32>
stablehlo.reverse %a, dims = [2] : tensor<4x8xf32>
stablehlo.iota dim = 1 : tensor<4xi32>
stablehlo.iota dim = 0 : tensor<i32>
stablehlo.dot_general %a, %b, contracting_dims = [0] x [0] : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<8x3xf32>
stablehlo.dot_general %a, %b, contracting_dims = [1] x [] : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
stablehlo.dot_general %a, %b, contracting_dims = [2] x [0] : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
stablehlo.dot_general %a, %b, contracting_dims = [1, 1] x [0, 0] : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x4xf32>
stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4xf32>
stablehlo.reduce(%a init: %s) applies stablehlo.add across dimensions = [2] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
stablehlo.reduce(%a init: %s) applies stablehlo.add across dimensions = [1, 1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
stablehlo.reduce(%a init: %s) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<5xf32>
stablehlo.reduce(%a init: %s) applies stablehlo.subtract across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
stablehlo.reduce(%a init: %n) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<i32>) -> tensor<4xf32>
"stablehlo.constant"() <{value = dense<1> : tensor<4xi32>}> : () -> tensor<5xi32>
stablehlo.constant 3 : i32
"stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x8xf32>) -> tensor<8x9xf32>
"stablehlo.all_gather"(%a) <{all_gather_dim = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x8xf32>) -> tensor<8x8xf32>
"stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = {}, axes = []>}> : (tensor<4x8xf32>) -> tensor<8x8xf32>
"stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh::@inner, axes = []>}> : (tensor<4x8xf32>) -> tensor<8x8xf32>
"stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = 1>}> : (tensor<4x8xf32>) -> tensor<8x8xf32>
"stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes = [<name = "x", size = 4>], device_ids = dense<1.0> : tensor<4xf32>>, axes = []>}> : (tensor<4x8xf32>) -> tensor<8x8xf32>
"stablehlo.collective_permute"(%a) <{source_target_pairs = dense<[[0, 1], [0, 2]]> : tensor<2x2xi64>}> : (tensor<4x8xf32>) -> tensor<4x8xf32>
"stablehlo.all_to_all"(%a) <{concat_dimension = 1 : i64, replica_groups = dense<[[0, 1, 2]]> : tensor<1x3xi64>, split_count = 3 : i64, split_dimension = 0 : i64}> : (tensor<4x8xf32>) -> tensor<2x16xf32>
"stablehlo.all_to_all"(%a) <{concat_dimension = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, split_count = 2 : i64, split_dimension = 0 : i64}> : (tensor<4x8xf32>) -> tensor<4x16xf32>
"stablehlo.gather"(%a, %n) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [0], start_index_map = [0]>, slice_sizes = array<i64: 1, 9>}> : (tensor<4x8xf32>, tensor<i32>) -> tensor<9xf32>
"stablehlo.gather"(%a, %n) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [0], start_index_map = [0]>, slice_sizes = array<i64: 1, 8>}> : (tensor<4x8xf32>, tensor<i32>) -> tensor<9xf32>
stablehlo.get_tuple_element %t[2] : (tuple<tensor<f32>, tensor<i32>>) -> tensor<f32>
stablehlo.custom_call @foo(%a) {operand_layouts = []} : (tensor<4x8xf32>) -> tensor<4x8xf32>
stablehlo.no_such_op %a : tensor<4x8xf32>
stablehlo.add %a %a : tensor<4x8xf32>
stablehlo.add %a, %a
stablehlo.reduce_precision %a, format = e5x : tensor<4x8xf32>
stablehlo.reduce_precision %a, format = e0m5 : tensor<4x8xf32>
stablehlo.complex %a, %a : tensor<4x8xf32>
""".strip().splitlines()
