"""Products computed step by step: each adds the product of a part of the contracting dimension to those before.

The blocks of a product in one step take all of the contracting dimensions, so that they are thin if these are long, and
read each operand many times. Blocks of a step are cubes, and the sums of a block are in memory one at a time.
"""

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import SSAValue

from sdy.blocks import BlockOperation, block_operation, cost
from sdy.box import Box
from sdy.ir.editing import replace
from sdy.ir.shapes import shape_of
from sdy.passes.blocks.block_shapes import Within, block_bytes, halves
from sdy.passes.blocks.group import BYTES_PER_SECOND, SECONDS_PER_BLOCK
from sdy.passes.blocks.split_reductions import dot_numbers
from sdy.rule import FactorKind
from sdy.stablehlo import DotGeneralOp, DotOp
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


def _fastest_parts(op: DotOp | DotGeneralOp, limit: int) -> int:
    """Return the number of parts of the longest contracting dimension that halves the predicted time, or 1."""
    blocks = block_operation(op)
    element = tensor_type(op.result).element_type
    if blocks is None or 0 in blocks.index_shape or (isinstance(element, AnyFloat) and element.bitwidth < _WIDE):
        return 1
    tile = [*blocks.index_shape]
    while block_bytes(blocks, tile) > limit:
        tile = min(halves(tile), key=lambda half: block_bytes(blocks, half))
    contracting = [number for number, axis in enumerate(blocks.axes) if axis.kind is FactorKind.REDUCTION]
    longest = max(contracting, key=blocks.index_shape.__getitem__, default=None)
    if longest is None or any(tile[number] < blocks.index_shape[number] for number in contracting if number != longest):
        return 1
    # A step also reads the sum of the steps before.
    in_steps, at_once = _seconds(blocks, tile, reads_of_result=1), _seconds(blocks, Within(limit)(op, blocks))
    return -(-blocks.index_shape[longest] // tile[longest]) if 2 * in_steps < at_once else 1


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
    sizes = shape_of(value)
    starts = [start if number == dim else 0 for number in range(len(sizes))]
    return emit.slice(value, starts, [end if number == dim else size for number, size in enumerate(sizes)])


def _seconds(blocks: BlockOperation, tile: Sequence[int], reads_of_result: int = 0) -> float:
    """Return the predicted time of all blocks of the shape `tile`, without arithmetic."""
    count = prod(-(-extent // size) for extent, size in zip(blocks.index_shape, tile, strict=True))
    of_block = cost(blocks, Box.of_shape(tile))
    traffic = int(of_block.bytes_read + (1 + reads_of_result) * of_block.bytes_written)
    return count * (SECONDS_PER_BLOCK + traffic / BYTES_PER_SECOND)
