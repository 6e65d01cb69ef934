"""Gather: each step reads one element at an index."""

from sdy.blocks.builder import BlockBuilder
from sdy.blocks.registry import register
from sdy.ir.shapes import shape_of
from sdy.rules.builder import REDUCTION
from sdy.rules.gather_scatter import gathered_dims
from sdy.stablehlo import GatherOp


@register("stablehlo.gather")
def gather(op: GatherOp, block: BlockBuilder) -> float:
    """Add an axis per batch and per dimension that is read in full; both can be split.

    Along a dimension with look-ups of single elements, a block of the operand gives the elements that it has, and 0 for
    the others, for a sum over all blocks. A window shorter than the operand may start anywhere in it, so that this
    dimension cannot be split.
    """
    operand, indices, result = shape_of(op.operand), shape_of(op.start_indices), shape_of(op.result)
    numbers, dims = gathered_dims(op)
    for dim, input_dim, indices_dim in dims:
        size = result[dim]
        if input_dim is None or indices_dim is not None or operand[input_dim] == size:
            places = {0: input_dim, 1: indices_dim}
            block.add(size, {tensor: place for tensor, place in places.items() if place is not None}, {0: dim})
        elif size == 1:
            block.add(operand[input_dim], {0: input_dim}, {}, REDUCTION)
            block.add_whole(size, {}, {0: dim})
        else:
            block.add_whole(operand[input_dim], {0: input_dim}, {0: dim}, blocked=True)
    for dim in numbers.collapsed_dims:
        if operand[dim] == 1:
            block.add_whole(1, {0: dim}, {})
        else:
            block.add(operand[dim], {0: dim}, {}, REDUCTION)
    if numbers.index_vector_dim < len(indices):
        block.add_whole(indices[numbers.index_vector_dim], {1: numbers.index_vector_dim}, {})
    return 0
