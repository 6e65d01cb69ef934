"""Dot products: a step multiplies two elements, and what the contracted axes give is summed up."""

from sdy.blocks.builder import BlockBuilder
from sdy.blocks.registry import register
from sdy.rules.builder import REDUCTION, shape_of
from sdy.stablehlo import DotGeneralOp, DotOp

MULTIPLY_AND_ADD = 2


@register("stablehlo.dot_general")
def dot_general(op: DotGeneralOp, block: BlockBuilder) -> float:
    """Batch, left and right dimensions in the result's order, then the contracted ones."""
    lhs, rhs = shape_of(op.lhs), shape_of(op.rhs)
    dims = op.dot_dimension_numbers.data
    batching = list(zip(dims.lhs_batching_dimensions, dims.rhs_batching_dimensions, strict=True))
    contracting = list(zip(dims.lhs_contracting_dimensions, dims.rhs_contracting_dimensions, strict=True))
    paired_lhs, paired_rhs = ({pair[side] for pair in batching + contracting} for side in (0, 1))
    result_dim = 0
    for left, right in batching:
        block.add(lhs[left], {0: left, 1: right}, {0: result_dim})
        result_dim += 1
    for operand, shape, paired in ((0, lhs, paired_lhs), (1, rhs, paired_rhs)):
        for dim, size in enumerate(shape):
            if dim not in paired:
                block.add(size, {operand: dim}, {0: result_dim})
                result_dim += 1
    for left, right in contracting:
        block.add(lhs[left], {0: left, 1: right}, {}, REDUCTION)
    return MULTIPLY_AND_ADD


@register("stablehlo.dot")
def dot(op: DotOp, block: BlockBuilder) -> float:
    """A product of matrices or vectors: the last dimension of the left with the first of the right."""
    lhs, rhs = shape_of(op.lhs), shape_of(op.rhs)
    last = len(lhs) - 1
    if last:
        block.add(lhs[0], {0: 0}, {0: 0})
    if len(rhs) == 2:
        block.add(rhs[1], {1: 1}, {0: last})
    block.add(rhs[0], {0: last, 1: 0}, {}, REDUCTION)
    return MULTIPLY_AND_ADD
