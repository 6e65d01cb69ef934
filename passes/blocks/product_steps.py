"""Products in parts of a long contracting dimension.

The blocks of a product take all of the contracting dimensions, so that they are thin if these are long, and read each
operand many times. Blocks of a part are cubes. A product whose blocks fit is computed step by step: each adds the
product of a part to those before, and the sums of a block are in memory one at a time. Partial products of others are
stored.
"""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import SSAValue

from sdy.blocks import BlockOperation, block_operation, cost
from sdy.box import Box
from sdy.ir.editing import replace
from sdy.ir.shapes import shape_of
from sdy.passes.blocks.block_shapes import Within, block_bytes, halves
from sdy.passes.blocks.group import BYTES_PER_SECOND, SECONDS_PER_BLOCK
from sdy.passes.blocks.split_reductions import dot_numbers, split_reduction
from sdy.rule import FactorKind
from sdy.stablehlo import DotGeneralOp, DotOp, TransposeOp
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.emitter import Emitter, before

_WIDE = 32
"""The bits of floats whose sums may be stored after each step: those of narrower floats would be rounded."""

_MOST_STEPS = 64
"""Each step is operations of the program."""


def accumulate_if_faster(op: DotOp | DotGeneralOp, limit: int) -> None:
    """Replace a product by steps with blocks of `limit` bytes, if they are predicted to halve its time."""
    parts = _fastest_parts(op, limit)
    if parts > 1:
        _accumulate(op, min(parts, _MOST_STEPS))


def split_product(op: DotOp | DotGeneralOp, least: int, limit: int) -> None:
    """Sum partial products with blocks of `limit` bytes, of at least `least` parts of a contracting dimension."""
    blocks = _summable(op)
    cube = None if blocks is None else _cube(blocks, limit)
    split_reduction(op, least if cube is None else max(least, cube.parts))


def _fastest_parts(op: DotOp | DotGeneralOp, limit: int) -> int:
    """Return the number of parts of the longest contracting dimension that halves the predicted time, or 1."""
    blocks = _summable(op)
    cube = None if blocks is None else _cube(blocks, limit)
    if blocks is None or cube is None:
        return 1
    # A step also reads the sum of the steps before.
    in_steps, at_once = _seconds(blocks, cube.tile, reads_of_result=1), _seconds(blocks, Within(limit)(op, blocks))
    return cube.parts if 2 * in_steps < at_once else 1


def _summable(op: DotOp | DotGeneralOp) -> BlockOperation | None:
    """Return the axes of a product; None if stored partial sums would be rounded."""
    blocks = block_operation(op)
    element = tensor_type(op.result).element_type
    is_narrow = isinstance(element, AnyFloat) and element.bitwidth < _WIDE
    return None if blocks is None or 0 in blocks.index_shape or is_narrow else blocks


class _Cube(NamedTuple):
    """A block that takes a part of the longest contracting dimension, and the number of parts."""

    tile: Sequence[int]
    parts: int


def _cube(blocks: BlockOperation, limit: int) -> _Cube | None:
    """Return the largest cube of `limit` bytes; None if it has parts of several contracting dimensions."""
    tile = [*blocks.index_shape]
    while block_bytes(blocks, tile) > limit and max(tile) > 1:
        tile = min(halves(tile), key=lambda half: block_bytes(blocks, half))
    contracting = [number for number, axis in enumerate(blocks.axes) if axis.kind is FactorKind.REDUCTION]
    longest = max(contracting, key=blocks.index_shape.__getitem__, default=None)
    if longest is None or any(tile[number] < blocks.index_shape[number] for number in contracting if number != longest):
        return None
    return _Cube(tile, -(-blocks.index_shape[longest] // tile[longest]))


def _accumulate(op: DotOp | DotGeneralOp, parts: int) -> None:
    """Compute a product as a sum over parts of the longest contracting dimension, each added to the ones before."""
    numbers = dot_numbers(op)
    sizes = shape_of(op.lhs)
    pairs = zip(numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions, strict=True)
    of_lhs, of_rhs = max(pairs, key=lambda pair: sizes[pair[0]])
    size, emit = -(-sizes[of_lhs] // parts), before(op)
    total: SSAValue | None = None
    for start in range(0, sizes[of_lhs], size):
        end = min(start + size, sizes[of_lhs])
        lhs, rhs = (_part(value, dim, start, end, emit) for value, dim in ((op.lhs, of_lhs), (op.rhs, of_rhs)))
        step = type(op).create(operands=[lhs, rhs], result_types=op.result_types, properties=op.properties)
        emit.insert(step)
        total = step.result if total is None else emit.add(total, step.result)
    assert total is not None
    replace(op, [total])


def _part(value: SSAValue, dim: int, start: int, end: int, emit: Emitter) -> SSAValue:
    """Slice a dimension, before a transpose: a block would transpose the whole dimension first."""
    if isinstance(transpose := value.owner, TransposeOp):
        order = transpose.permutation.get_values()
        return emit.transpose(_part(transpose.operand, order[dim], start, end, emit), order)
    sizes = shape_of(value)
    starts = [start if number == dim else 0 for number in range(len(sizes))]
    return emit.slice(value, starts, [end if number == dim else size for number, size in enumerate(sizes)])


def _seconds(blocks: BlockOperation, tile: Sequence[int], reads_of_result: int = 0) -> float:
    """Return the predicted time of all blocks of the shape `tile`, without arithmetic."""
    count = prod(-(-extent // size) for extent, size in zip(blocks.index_shape, tile, strict=True))
    of_block = cost(blocks, Box.of_shape(tile))
    traffic = int(of_block.bytes_read + (1 + reads_of_result) * of_block.bytes_written)
    return count * (SECONDS_PER_BLOCK + traffic / BYTES_PER_SECOND)
