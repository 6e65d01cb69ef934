"""Block operations: sharding rules derived from projections, and the elements that blocks touch."""

from dataclasses import replace
from itertools import count

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp, TensorType, f32
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def
from xdsl.utils.test_value import create_ssa_value

from jax_programs import PROGRAMS, lowered
from random_operations import programs
from samples import sample
from sdy.blocks import (
    BlockOperation,
    block_operation,
    cost,
    cost_per_step,
    derived_rule,
    halo,
    override_memory,
)
from sdy.box import Box
from sdy.diagnostics import capture
from sdy.mesh import Mesh
from sdy.passes.spmd.shards.layout import Layout
from sdy.passes.spmd.shards.sliding_window import SlidingWindow
from sdy.rule import FactorKind
from sdy.rules import register_movement, shape_of, sharding_rule
from sdy.rules.builder import Factors
from sdy.sharding import TensorSharding
from sdy.stablehlo.checks.windows import WindowDimension
from sdy.text import parse

LINALG = """
func.func @products(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>, %c: tensor<4x6xf32>) {
  %0 = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x6xf32>) outs(%c : tensor<4x6xf32>) -> tensor<4x6xf32>
  return
}
func.func @window(%x: tensor<8x33xf32>, %kernel: tensor<3xf32>, %init: tensor<8x16xf32>) {
  %0 = linalg.generic {
    indexing_maps = [affine_map<(i, j, k) -> (i, j * 2 + k)>, affine_map<(i, j, k) -> (k)>,
                     affine_map<(i, j, k) -> (i, j)>],
    iterator_types = ["parallel", "parallel", "reduction"]
  } ins(%x, %kernel : tensor<8x33xf32>, tensor<3xf32>) outs(%init : tensor<8x16xf32>) {
  ^bb0(%e: f32, %w: f32, %o: f32):
    %1 = arith.mulf %e, %w : f32
    %2 = arith.addf %o, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<8x16xf32>
  return
}
func.func @diagonal(%x: tensor<8x8x5xf32>, %init: tensor<8xf32>) {
  %0 = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i, i, 3)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]
  } ins(%x : tensor<8x8x5xf32>) outs(%init : tensor<8xf32>) {
  ^bb0(%e: f32, %o: f32):
    linalg.yield %e : f32
  } -> tensor<8xf32>
  return
}
func.func @blocked(%x: tensor<32xf32>, %init: tensor<32xf32>) {
  %0 = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i floordiv 4)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]
  } ins(%x : tensor<32xf32>) outs(%init : tensor<32xf32>) {
  ^bb0(%e: f32, %o: f32):
    linalg.yield %e : f32
  } -> tensor<32xf32>
  return
}
"""


def compared_operations(module: ModuleOp) -> int:
    """Check that projections and registered rules agree, and return the number of operations compared."""
    with capture():
        blocks = ((block_operation(op), sharding_rule(op)) for op in module.walk())
        pairs = [(derived_rule(block), rule) for block, rule in blocks if block and rule]
    assert [derived for derived, _ in pairs] == [replace(rule, is_custom=False) for _, rule in pairs]
    return len(pairs)


@pytest.mark.parametrize("name", sample(PROGRAMS, one_in=3))
def test_rules_of_jax_programs(name: str):
    compared_operations(parse(lowered(name).pretty))


@pytest.mark.parametrize("seed", sample(range(4), one_in=2))
def test_rules_of_random_operations(seed: int):
    assert compared_operations(parse(programs(300, seed))) > 150


def test_rules_of_linalg():
    assert compared_operations(parse(LINALG)) == 4


def blocks_of(body: str, *types: str) -> BlockOperation:
    """Return the block operation of the first operation of a function; its arguments `%0`, ... have `types`."""
    arguments = ", ".join(f"%{number}: tensor<{type_}>" for number, type_ in zip(count(), types))
    module = parse(f"func.func @main({arguments}) {{\n{body}\nreturn\n}}")
    found = block_operation(
        [op for op in module.body.block.walk() if op.results and op.parent_op() is module.body.block.first_op][-1]
    )
    assert found
    return found


MATMUL = blocks_of(
    "%r = stablehlo.dot %0, %1 : (tensor<8x3xf32>, tensor<3x5xf32>) -> tensor<8x5xf32>", "8x3xf32", "3x5xf32"
)


def test_matmul():
    assert MATMUL.index_shape == (8, 5, 3)
    assert [axis.kind for axis in MATMUL.axes] == [None, None, FactorKind.REDUCTION]
    left, right = MATMUL.operands
    part = Box.of((2, 0, 0), (4, 5, 3))
    assert left.image(part) == Box.of((2, 0), (4, 3))
    assert right.image(part) == Box.of_shape((3, 5))
    assert (left.bytes(part), right.bytes(part), MATMUL.results[0].bytes(part)) == (24, 60, 40)


def test_convolution_with_a_kernel_that_skips():
    block = blocks_of(
        """%r = stablehlo.convolution(%0, %1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
             window = {stride = [2], pad = [[2, 2]], rhs_dilate = [2], reverse = [true]}
             {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
             : (tensor<1x9x1xf32>, tensor<3x1x1xf32>) -> tensor<1x5x1xf32>""",
        "1x9x1xf32",
        "3x1x1xf32",
    )
    taps = block.axes.index(next(axis for axis in block.axes if axis.kind is FactorKind.REDUCTION))
    whole = block.index_space
    assert block.operands[0].image(whole) == Box.of((0, -2, 0), (1, 11, 1))
    assert block.operands[1].projection.matrix[taps].tolist() == [-1, 0, 0]
    assert block.operands[0].bytes(whole) == 36


def window_block(size: int, window: WindowDimension, places: int) -> BlockOperation:
    """Return the block operation of a windowed reduction of a vector of `size` elements."""
    return blocks_of(
        f"""%z = stablehlo.constant dense<0.0> : tensor<f32>
            %r = "stablehlo.reduce_window"(%0, %z) ({{
            ^bb0(%a: tensor<f32>, %b: tensor<f32>):
              %s = stablehlo.add %a, %b : tensor<f32>
              "stablehlo.return"(%s) : (tensor<f32>) -> ()
            }}) {{window_dimensions = array<i64: {window.size}>, window_strides = array<i64: {window.stride}>,
                 padding = dense<[[{window.padding[0]}, {window.padding[1]}]]> : tensor<1x2xi64>}}
                : (tensor<{size}xf32>, tensor<f32>) -> tensor<{places}xf32>""",
        f"{size}xf32",
    )


@pytest.mark.parametrize(
    ("block", "before", "after"),
    [
        (window_block(16, WindowDimension(3, 1, (1, 1)), 16), [1, 1, 1, 1], [1, 1, 1, 1]),
        (window_block(16, WindowDimension(4, 1, (0, 3)), 16), [0, 0, 0, 0], [3, 3, 3, 3]),
        (window_block(16, WindowDimension(2, 2, (0, 0)), 8), [0, 0, 0, 0], [0, 0, 0, 0]),
        (window_block(16, WindowDimension(4, 2, (0, 0)), 7), [0, 0, 0, 0], [2, 2, 2, 2]),
        (window_block(16, WindowDimension(5, 1, (0, 0)), 12), [0, 1, 2, 3], [3, 2, 1, 0]),
    ],
)
def test_halo_of_windows(block: BlockOperation, before: list[int], after: list[int]):
    assert [part.tolist() for part in halo(block, 0, 0, 4)] == [before, after]


def test_halo_of_a_reversal_is_the_other_end():
    block = blocks_of("%r = stablehlo.reverse %0, dims = [0] : tensor<8xf32>", "8xf32")
    assert [part.tolist() for part in halo(block, 0, 0, 4)] == [[-6, -2, 2, 6], [6, 2, -2, -6]]


@irdl_op_definition
class TurnedOp(IRDLOperation):
    name = "ours.turned"
    input = operand_def(TensorType)
    result = result_def(TensorType)


def test_movement_rule_gives_a_block_operation():
    @register_movement(TurnedOp.name)
    def turned(op: TurnedOp, rule: Factors) -> None:
        """Turn rows into columns, the last row first."""
        rows, columns = shape_of(op.input)
        rule.add(columns, {0: 1}, {0: 0})
        rule.add(rows, {0: 0}, {0: 1}, FactorKind.PERMUTATION)
        rule.read_backwards(0, 0)

    operand = create_ssa_value(TensorType(f32, [3, 4]))
    op = TurnedOp.create(operands=[operand], result_types=[TensorType(f32, [4, 3])])
    block, rule = block_operation(op), sharding_rule(op)
    assert block is not None
    assert rule is not None
    assert derived_rule(block) == rule
    assert rule.permutation == (1,)
    projection = block.operands[0].projection
    assert projection.offset.tolist() == [2, 0]
    assert projection.matrix.tolist() == [[0, 1], [-1, 0]]


def test_halo_along_an_axis_that_the_operand_does_not_have():
    with pytest.raises(ValueError, match=r"operand 1 of 'stablehlo.dot' is not split along axis 0"):
        halo(MATMUL, 1, 0, 2)


def test_cost_of_a_matmul():
    """Twice as many steps take twice the arithmetic; an axis that an operand lacks does not increase its reads."""
    block = cost(MATMUL, MATMUL.index_space)
    assert (block.flops, block.bytes_read, block.bytes_written, block.memory) == (240, 96 + 60, 160, 316)
    halves = cost(MATMUL, MATMUL.index_space.blocks((4, 5, 3)))
    assert halves.flops.tolist() == [120, 120]
    assert halves.bytes_read.tolist() == [48 + 60] * 2
    step = cost_per_step(MATMUL, (2, 4, 2))
    assert step.flops.tolist() == [16, 8, 16]
    assert step.bytes_read.tolist() == [8, 8, 24]
    assert step.bytes_written.tolist() == [16, 8, 0]


def test_memory_that_projections_cannot_know(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sdy.blocks.costs._intermediates", {})
    override_memory("stablehlo.dot", lambda _, blocks: blocks.size * 4)
    assert cost(MATMUL, MATMUL.index_space).memory == 316 + 480


@given(
    st.integers(1, 20),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(0, 4),
    st.integers(0, 4),
    st.sampled_from([2, 4]),
)
def test_partitioning_exchanges_the_halo_of_the_projection(
    size: int, window: int, stride: int, low: int, high: int, parts: int
):
    """Each device receives the rows that the image of its block contains, its own or its neighbours'."""
    along = WindowDimension(window, stride, (low, high))
    places = along.places(size)
    assume(places)
    assert places is not None
    block = window_block(size, along, places)
    operand, result = (split_layout(extent, parts) for extent in (size, places))
    ranges, _ = SlidingWindow(along, 0, 0).part(operand, result)
    of_part = -(-places // parts)
    for part in range(-(-places // of_part)):
        index = Box.of([part * of_part], [min((part + 1) * of_part, places)])
        image = block.operands[0].image(index)
        touched = range(max(int(image.start[0]), 0), min(int(image.end[0]), size))
        assert list(ranges.rows(part)) == list(touched)


def split_layout(size: int, parts: int) -> Layout:
    mesh = Mesh.of({"x": parts})
    return Layout(TensorType(f32, [size]), TensorSharding.of("x", mesh=mesh), mesh)
