"""Texts of programs of one or a few operations on sharded tensors."""

import re

from xdsl.dialects.builtin import ModuleOp

import sdy

MESHES = """
sdy.mesh @mesh = <["x"=2, "y"=2]>
sdy.mesh @other = <["a"=4]>
sdy.mesh @shuffled = <["x"=2, "y"=2], device_ids=[3, 1, 0, 2]>
sdy.mesh @third = <[], device_ids=[2]>
"""
_SPLIT_TYPE = re.compile(r"(-> )?(tensor<[\w<>?]*>)\[([^\]]*)\]")


def module(text: str, meshes: str = MESHES) -> ModuleOp:
    """Return a module; `tensor<8x4xf32>[x, y]` in `text` is a type with the axes that shard each dimension."""

    def sharding(found: re.Match[str]) -> str:
        arrow, type_, split = found.groups()
        dims = ", ".join("{" + ", ".join(f'"{axis}"' for axis in dim.split()) + "}" for dim in split.split(","))
        split_type = f"{type_} {{sdy.sharding = #sdy.sharding<@mesh, [{dims}]>}}"
        return f"{arrow}({split_type})" if arrow else split_type

    return sdy.parse(meshes + _SPLIT_TYPE.sub(sharding, text), "test.mlir")


SUM = """({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  })"""
"""Reducer that adds numbers."""

IN_PARTS = {
    "from one mesh to another": """
        func.func @main(%arg0: tensor<8x4xf32>[x, y])
            -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@other, [{"a"}, {}]>}) {
          %0 = stablehlo.add %arg0, %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@other, [{"a"}, {}]>]>}
            : tensor<8x4xf32>
          return %0 : tensor<8x4xf32>
        }""",
    "sort of several": """
        func.func @main(%arg0: tensor<8x4xf32>[x, y], %arg1: tensor<8x4xi32>[x, y])
            -> (tensor<8x4xf32>[x, y], tensor<8x4xi32>) {
          %0:2 = "stablehlo.sort"(%arg0, %arg1) <{dimension = 0 : i64, is_stable = true}> ({
          ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
            %1 = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
            stablehlo.return %1 : tensor<i1>
          }) : (tensor<8x4xf32>, tensor<8x4xi32>) -> (tensor<8x4xf32>, tensor<8x4xi32>)
          return %0#0, %0#1 : tensor<8x4xf32>, tensor<8x4xi32>
        }""",
    "sums of several": """
        func.func @main(
            %arg0: tensor<8x4xf32>[x, y], %arg1: tensor<8x4xi32>[x, y], %arg2: tensor<f32>, %arg3: tensor<i32>)
            -> (tensor<4xf32>, tensor<4xi32>) {
          %0:2 = stablehlo.reduce(%arg0 init: %arg2), (%arg1 init: %arg3) across dimensions = [0]
            : (tensor<8x4xf32>, tensor<8x4xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)
            reducer(%a: tensor<f32>, %b: tensor<f32>) (%c: tensor<i32>, %d: tensor<i32>) {
              %1 = stablehlo.add %a, %b : tensor<f32>
              %2 = stablehlo.add %c, %d : tensor<i32>
              stablehlo.return %1, %2 : tensor<f32>, tensor<i32>
            }
          return %0#0, %0#1 : tensor<4xf32>, tensor<4xi32>
        }""",
    "greatest and its place": """
        func.func @main(%arg0: tensor<8x4xf32>[x, y]) -> (tensor<4xf32>, tensor<4xi32>) {
          %place = stablehlo.iota dim = 0 : tensor<8x4xi32>
          %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
          %zero = stablehlo.constant dense<0> : tensor<i32>
          %0:2 = stablehlo.reduce(%arg0 init: %least), (%place init: %zero) across dimensions = [0]
            : (tensor<8x4xf32>, tensor<8x4xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)
            reducer(%a: tensor<f32>, %b: tensor<f32>) (%c: tensor<i32>, %d: tensor<i32>) {
              %1 = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
              %2 = stablehlo.select %1, %a, %b : tensor<i1>, tensor<f32>
              %3 = stablehlo.select %1, %c, %d : tensor<i1>, tensor<i32>
              stablehlo.return %2, %3 : tensor<f32>, tensor<i32>
            }
          return %0#0, %0#1 : tensor<4xf32>, tensor<4xi32>
        }""",
    "exclusive or": """
        func.func @main(%arg0: tensor<8x4xi32>[x, y], %arg1: tensor<i32>) -> tensor<4xi32> {
          %0 = stablehlo.reduce(%arg0 init: %arg1) applies stablehlo.xor across dimensions = [0]
            : (tensor<8x4xi32>, tensor<i32>) -> tensor<4xi32>
          return %0 : tensor<4xi32>
        }""",
    "elements made of others": """
        func.func @main(%arg0: tensor<8x4xf32>[x, y], %arg1: tensor<8x4xi32>[x, y], %arg2: tensor<f32>)
            -> (tensor<8x4xf32>, tensor<8x4xcomplex<f32>>[x, y], tensor<8x4x4xi8>[x, y,], tensor<i32>,
                tensor<8x4xf32>) {
          %0 = stablehlo.reduce_precision %arg0, format = e5m2 : tensor<8x4xf32>
          %1 = stablehlo.complex %arg0, %0 : tensor<8x4xcomplex<f32>>
          %2 = stablehlo.bitcast_convert %arg1 : (tensor<8x4xi32>) -> tensor<8x4x4xi8>
          %3 = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<8x4xf32>) -> tensor<i32>
          %4 = stablehlo.clamp %arg2, %arg0, %arg2 : (tensor<f32>, tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
          %5:2 = stablehlo.optimization_barrier %4, %2 : tensor<8x4xf32>, tensor<8x4x4xi8>
          return %0, %1, %5#1, %3, %5#0
            : tensor<8x4xf32>, tensor<8x4xcomplex<f32>>, tensor<8x4x4xi8>, tensor<i32>, tensor<8x4xf32>
        }""",
    "slices at indices": """
        func.func @main(%arg0: tensor<8x4xf32>[x, y], %arg1: tensor<3x2xf32>, %arg2: tensor<i32>, %arg3: tensor<i32>)
            -> (tensor<4x2xf32>[x, y], tensor<8x4xf32>[x, y]) {
          %0 = stablehlo.dynamic_slice %arg0, %arg2, %arg3, sizes = [4, 2]
            : (tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> tensor<4x2xf32>
          %1 = stablehlo.dynamic_update_slice %arg0, %arg1, %arg2, %arg3
            : (tensor<8x4xf32>, tensor<3x2xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>
          return %0, %1 : tensor<4x2xf32>, tensor<8x4xf32>
        }""",
    "linear algebra": """
        func.func @main(%arg0: tensor<8x4x4xf32>[x, y,], %arg1: tensor<8x4x6xf32>[x,, y]) -> tensor<8x4x6xf32> {
          %0 = stablehlo.dot_general %arg0, %arg0, batching_dims = [0] x [0], contracting_dims = [2] x [2]
            : (tensor<8x4x4xf32>, tensor<8x4x4xf32>) -> tensor<8x4x4xf32>
          %1 = stablehlo.constant dense<9.0> : tensor<8x4x4xf32>
          %2 = stablehlo.iota dim = 1 : tensor<8x4x4xi32>
          %3 = stablehlo.iota dim = 2 : tensor<8x4x4xi32>
          %4 = stablehlo.compare EQ, %2, %3 : (tensor<8x4x4xi32>, tensor<8x4x4xi32>) -> tensor<8x4x4xi1>
          %5 = stablehlo.convert %4 : (tensor<8x4x4xi1>) -> tensor<8x4x4xf32>
          %6 = stablehlo.multiply %5, %1 : tensor<8x4x4xf32>
          %7 = stablehlo.add %0, %6 : tensor<8x4x4xf32>
          %8 = stablehlo.cholesky %7, lower = true : tensor<8x4x4xf32>
          %9 = "stablehlo.triangular_solve"(%8, %arg1) <{left_side = true, lower = true, unit_diagonal = false,
              transpose_a = #stablehlo<transpose NO_TRANSPOSE>}>
            : (tensor<8x4x4xf32>, tensor<8x4x6xf32>) -> tensor<8x4x6xf32>
          return %9 : tensor<8x4x6xf32>
        }""",
    "spectrum": """
        func.func @main(%arg0: tensor<8x4xcomplex<f32>>[x, y]) -> tensor<8x4xcomplex<f32>>[x, y] {
          %0 = stablehlo.fft %arg0, type = FFT, length = [8, 4] : (tensor<8x4xcomplex<f32>>) -> tensor<8x4xcomplex<f32>>
          return %0 : tensor<8x4xcomplex<f32>>
        }""",
    "loop": """
        func.func @main(%arg0: tensor<8x4xf32>[x, y], %arg1: tensor<7x4xf32>)
            -> (tensor<8x4xf32>[x, y], tensor<7x4xf32>) {
          %zero = stablehlo.constant dense<0> : tensor<i32>
          %one = stablehlo.constant dense<1> : tensor<i32>
          %end = stablehlo.constant dense<3> : tensor<i32>
          %uneven = sdy.sharding_constraint %arg1 <@mesh, [{"x"}, {"y"}]> : tensor<7x4xf32>
          %0:3 = stablehlo.while(%i = %zero, %u = %arg0, %v = %uneven) : tensor<i32>, tensor<8x4xf32>, tensor<7x4xf32>
            cond {
              %1 = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
              stablehlo.return %1 : tensor<i1>
            } do {
              %1 = stablehlo.add %i, %one : tensor<i32>
              %2 = stablehlo.dot_general %v, %u, contracting_dims = [1] x [1]
                : (tensor<7x4xf32>, tensor<8x4xf32>) -> tensor<7x8xf32>
              %3 = stablehlo.dot_general %2, %u, contracting_dims = [1] x [0]
                : (tensor<7x8xf32>, tensor<8x4xf32>) -> tensor<7x4xf32>
              %4 = stablehlo.tanh %3 : tensor<7x4xf32>
              %5 = stablehlo.cosine %u : tensor<8x4xf32>
              stablehlo.return %1, %5, %4 : tensor<i32>, tensor<8x4xf32>, tensor<7x4xf32>
            }
          return %0#1, %0#2 : tensor<8x4xf32>, tensor<7x4xf32>
        }""",
    "branches": """
        func.func @main(%arg0: tensor<8x4xf32>[x, y], %arg1: tensor<i32>, %arg2: tensor<i1>) -> tensor<4x8xf32>[x, y] {
          %0 = "stablehlo.case"(%arg1) ({
            %2 = stablehlo.negate %arg0 : tensor<8x4xf32>
            stablehlo.return %2 : tensor<8x4xf32>
          }, {
            %2 = stablehlo.constant dense<0.0> : tensor<f32>
            %3 = stablehlo.reduce(%arg0 init: %2) applies stablehlo.add across dimensions = [0]
              : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
            %4 = stablehlo.broadcast_in_dim %3, dims = [1] : (tensor<4xf32>) -> tensor<8x4xf32>
            stablehlo.return %4 : tensor<8x4xf32>
          }) : (tensor<i32>) -> tensor<8x4xf32>
          %1 = "stablehlo.if"(%arg2) ({
            %2 = stablehlo.transpose %0, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
            stablehlo.return %2 : tensor<4x8xf32>
          }, {
            %2 = stablehlo.reshape %0 : (tensor<8x4xf32>) -> tensor<4x8xf32>
            stablehlo.return %2 : tensor<4x8xf32>
          }) : (tensor<i1>) -> tensor<4x8xf32>
          return %1 : tensor<4x8xf32>
        }""",
    "calls": """
        func.func @main(%arg0: tensor<8x4xf32>[x, y], %arg1: tensor<8x4xf32>) -> tensor<4xf32> {
          %0 = func.call @sum(%arg0) : (tensor<8x4xf32>) -> tensor<4xf32>
          %1 = func.call @sum(%arg1) : (tensor<8x4xf32>) -> tensor<4xf32>
          %2 = stablehlo.add %0, %1 : tensor<4xf32>
          return %2 : tensor<4xf32>
        }
        func.func private @sum(%arg0: tensor<8x4xf32>) -> tensor<4xf32> {
          %0 = stablehlo.constant dense<0.0> : tensor<f32>
          %1 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.add across dimensions = [0]
            : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
          return %1 : tensor<4xf32>
        }""",
    "a map": """
        func.func @main(%arg0: tensor<8x4xf32>[x, y]) -> tensor<8x4xf32>[x, y] {
          %0 = "stablehlo.map"(%arg0, %arg0) <{dimensions = array<i64: 0, 1>}> SUM
            : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
          return %0 : tensor<8x4xf32>
        }""".replace("SUM", SUM),
    "tokens": """
        func.func @main(%arg0: tensor<8x4xf32>[x, y]) -> tensor<8x4xf32>[x, y] {
          %0 = stablehlo.create_token : !stablehlo.token
          %1 = stablehlo.after_all %0, %0 : !stablehlo.token
          %2 = stablehlo.negate %arg0 : tensor<8x4xf32>
          return %2 : tensor<8x4xf32>
        }""",
    "devices in another order": """
        func.func @main(%arg0: tensor<8x4xf32>[x, y])
            -> (tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@shuffled, [{"y"}, {"x"}]>}) {
          %0 = sdy.sharding_constraint %arg0 <@shuffled, [{"x"}, {"y"}]> : tensor<8x4xf32>
          %1 = stablehlo.dot_general %0, %0, contracting_dims = [0] x [0]
            : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
          return %1 : tensor<4x4xf32>
        }""",
    "one device": """
        func.func @main(%arg0: tensor<8x4xf32>[x, y]) -> tensor<8x4xf32>[x, y] {
          %0 = stablehlo.negate %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@third, []>]>} : tensor<8x4xf32>
          %1 = stablehlo.add %0, %arg0 : tensor<8x4xf32>
          return %1 : tensor<8x4xf32>
        }""",
    "normalisation of batches": """
        func.func @main(%arg0: tensor<8x4x6xf32>[x, y,], %arg1: tensor<4xf32>, %arg2: tensor<4xf32>)
            -> (tensor<8x4x6xf32>[x, y,], tensor<4xf32>, tensor<4xf32>) {
          %0:3 = "stablehlo.batch_norm_training"(%arg0, %arg1, %arg2) <{epsilon = 0.1 : f32, feature_index = 1 : i64}>
            : (tensor<8x4x6xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<8x4x6xf32>, tensor<4xf32>, tensor<4xf32>)
          return %0#0, %0#1, %0#2 : tensor<8x4x6xf32>, tensor<4xf32>, tensor<4xf32>
        }""",
    "gradient of a normalisation": """
        func.func @main(%arg0: tensor<7x6x4xf32>, %arg1: tensor<4xf32>, %arg2: tensor<4xf32>, %arg3: tensor<7x6x4xf32>)
            -> (tensor<7x6x4xf32>, tensor<4xf32>, tensor<4xf32>) {
          %0 = sdy.sharding_constraint %arg0 <@mesh, [{"x"}, {"y"}, {}]> : tensor<7x6x4xf32>
          %1 = stablehlo.abs %arg2 : tensor<4xf32>
          %2:3 = "stablehlo.batch_norm_grad"(%0, %arg1, %arg2, %1, %arg3) <{epsilon = 0.1 : f32,
              feature_index = 2 : i64}>
            : (tensor<7x6x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<7x6x4xf32>)
            -> (tensor<7x6x4xf32>, tensor<4xf32>, tensor<4xf32>)
          return %2#0, %2#1, %2#2 : tensor<7x6x4xf32>, tensor<4xf32>, tensor<4xf32>
        }""",
    "composites in a composite": """
        func.func @main(%arg0: tensor<8x4xf32>[x, y]) -> (tensor<8x4xf32>, tensor<4xf32>) {
          %0:2 = stablehlo.composite "my.twice" %arg0 {decomposition = @twice}
            : (tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>)
          %1 = stablehlo.sine %0#0 : tensor<8x4xf32>
          return %1, %0#1 : tensor<8x4xf32>, tensor<4xf32>
        }
        func.func private @twice(%arg0: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>) {
          %0:2 = stablehlo.composite "my.sum" %arg0 {decomposition = @sum}
            : (tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>)
          %1:2 = stablehlo.composite "my.sum" %0#0 {decomposition = @sum}
            : (tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>)
          return %arg0, %1#1 : tensor<8x4xf32>, tensor<4xf32>
        }
        func.func private @sum(%arg0: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>) {
          %0 = stablehlo.constant dense<0.0> : tensor<f32>
          %1 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.add across dimensions = [0]
            : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
          %2 = stablehlo.cosine %arg0 : tensor<8x4xf32>
          return %2, %1 : tensor<8x4xf32>, tensor<4xf32>
        }""",
    "as many uneven groups as features": """
        func.func @main(%arg0: tensor<2x8x7xf32>, %arg1: tensor<3x1x7xf32>) -> tensor<2x6x7xf32> {
          %0 = sdy.sharding_constraint %arg0 <@mesh, [{}, {}, {"x"}]> : tensor<2x8x7xf32>
          %1 = stablehlo.convolution(%0, %arg1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {}
            {batch_group_count = 1 : i64, feature_group_count = 7 : i64}
            : (tensor<2x8x7xf32>, tensor<3x1x7xf32>) -> tensor<2x6x7xf32>
          return %1 : tensor<2x6x7xf32>
        }""",
}
"""Programs that devices compute from shards, with collectives but without replicated computation."""

WHOLE = {
    "stablehlo.rng_bit_generator": """
        func.func @main(%arg0: tensor<2xui64>) -> (tensor<2xui64>, tensor<8xi32>[x]) {
          %0:2 = stablehlo.rng_bit_generator %arg0, algorithm = THREE_FRY
            : (tensor<2xui64>) -> (tensor<2xui64>, tensor<8xi32>)
          return %0#0, %0#1 : tensor<2xui64>, tensor<8xi32>
        }""",
    "stablehlo.outfeed": """
        func.func @main(%arg0: tensor<8x4xf32>[x, y]) -> tensor<8x4xf32>[x, y] {
          %0 = stablehlo.create_token : !stablehlo.token
          %1 = "stablehlo.outfeed"(%arg0, %0) <{outfeed_config = ""}>
            : (tensor<8x4xf32>, !stablehlo.token) -> !stablehlo.token
          return %arg0 : tensor<8x4xf32>
        }""",
}
"""Programs with an operation that each device computes replicated, by the name of the operation."""
