"""`sdy-fit-blocks`: rewrite operations whose smallest blocks exceed a size."""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from sdy.blocks import block_operation, operands_of
from sdy.ir.editing import replace
from sdy.ir.shapes import is_static_tensor, shape_of
from sdy.passes.blocks.block_shapes import block_bytes, can_be_computed
from sdy.passes.blocks.expand import expand
from sdy.passes.blocks.split_reductions import split_reduction
from sdy.rule import FactorKind
from sdy.stablehlo import DotGeneralOp, DotOp, ReduceOp, ReshapeOp
from sdy.stablehlo.checks.agreement import bit_width
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.emitter import before


@dataclass(frozen=True)
class FitBlocksPass(ModulePass):
    """Rewrite the operations of the main function whose smallest blocks exceed `block_bytes`.

    A reduction becomes a tree: of parts that fit, of their results, and so on. Before, with blocks of 64 KiB::

        %0 = stablehlo.reduce(%a init: %c) applies stablehlo.add across dimensions = [1] : tensor<4x65537xf32>

    After::

        %0 = stablehlo.pad %a, %c, low = [0, 0], high = [0, 3], interior = [0, 0]
        %1 = stablehlo.reshape %0 : (tensor<4x65540xf32>) -> tensor<4x5x13108xf32>
        %2 = stablehlo.reduce(%1 init: %c) applies stablehlo.add across dimensions = [2]
        %3 = stablehlo.reduce(%2 init: %c) applies stablehlo.add across dimensions = [1]

    An operation that fits stays: one step has the least traffic. Calls are inlined first.
    """

    name = "sdy-fit-blocks"
    block_bytes: int = 2**28

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        fit_blocks(op, self.block_bytes)


def fit_blocks(module: ModuleOp, limit: int) -> None:
    """Expand `module`, and rewrite operations until each has blocks of at most `limit` bytes or cannot be rewritten."""
    expand(module)
    for function in module.ops:
        if isinstance(function, FuncOp) and not function.is_declaration:
            _fit(function.body.block, limit)


def _fit(block: Block, limit: int) -> None:
    op = block.first_op
    while op is not None:
        previous = op.prev_op
        rewrite = _REWRITES.get(type(op))
        if rewrite is not None and _is_static(op) and (size := smallest_block_bytes(op)) > limit:
            rewrite(op, size, limit)
        is_kept = op.parent is block
        following = block.first_op if previous is None else previous.next_op
        op = op.next_op if is_kept else following


def smallest_block_bytes(op: Operation) -> int:
    """Return the bytes of a block of one step, or as few as blocks of `op` can have; all bytes without axes."""
    blocks = block_operation(op)
    if blocks is None or 0 in blocks.index_shape:
        return sum(_nbytes(value) for value in (*operands_of(op), *op.results))
    steps = list(blocks.index_shape)
    for axis in range(len(steps)):
        candidate = [1 if number == axis else size for number, size in enumerate(steps)]
        if can_be_computed(blocks, candidate):
            steps = candidate
    return block_bytes(blocks, steps)


def _is_static(op: Operation) -> bool:
    return all(is_static_tensor(value.type) for value in (*op.operands, *op.results))


def _nbytes(value: SSAValue) -> int:
    type_ = tensor_type(value)
    return prod(type_.get_shape()) * -(-bit_width(type_.element_type) // 8)


def _split_reduction(op: DotOp | DotGeneralOp | ReduceOp, size: int, limit: int) -> None:
    """Reduce in a tree: the operand in parts of half of `limit`, since results and initial values take memory too."""
    blocks = block_operation(op)
    assert blocks is not None
    longest = max((axis.extent for axis in blocks.axes if axis.kind is FactorKind.REDUCTION), default=1)
    parts = min(-(-2 * size // limit), longest // 2)
    if parts > 1:
        split_reduction(op, parts)


def _reshape_twice(op: ReshapeOp, size: int, limit: int) -> None:
    """Merge all dimensions, then split them: each step has blocks, while 6x4 -> 8x3 has none."""
    if len(shape_of(op.operand)) > 1 < len(shape_of(op.result)):
        emit = before(op)
        flat = emit.reshape(op.operand, [prod(shape_of(op.operand))])
        replace(op, [emit.reshape(flat, shape_of(op.result))])


_REWRITES: dict[type[Operation], Callable[[Any, int, int], None]] = {
    DotGeneralOp: _split_reduction,
    DotOp: _split_reduction,
    ReduceOp: _split_reduction,
    ReshapeOp: _reshape_twice,
}
"""Functions that rewrite an operation with a smallest block of `size` bytes for blocks of `limit` bytes."""
