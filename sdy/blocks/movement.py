"""Slices, pads, concatenations and gathers: operations that move elements, and drop some or insert padding.

Operations whose rule determines the source of each element, such as transposes, need no registration here.
"""

from sdy.blocks.builder import BlockBuilder
from sdy.blocks.registry import register
from sdy.ir.shapes import shape_of
from sdy.rule import FactorKind
from sdy.rules import shape as rules
from sdy.rules.builder import PASS_THROUGH, PERMUTATION, REDUCTION
from sdy.rules.gather_scatter import gathered_dims
from sdy.stablehlo import ConcatenateOp, GatherOp, PadOp, SliceOp


@register("stablehlo.slice")
def slice_(op: SliceOp, block: BlockBuilder) -> float:
    """Read each element of the result from the operand, with a stride and a start."""
    operand, result = shape_of(op.operand), shape_of(op.result)
    for dim, (start, stride) in enumerate(zip(op.start_indices.get_values(), op.strides.get_values(), strict=True)):
        block.add(result[dim], {0: (dim, stride)}, {0: dim}, size=operand[dim])
        block.see_operand(0, dim, offset=start)
    return 0


@register("stablehlo.pad")
def pad(op: PadOp, block: BlockBuilder) -> float:
    """Read each element of the result from the padded operand; negative padding drops elements.

    A dimension of a single element is padded in one step.
    """
    low, interior = op.edge_padding_low.get_values(), op.interior_padding.get_values()
    for dim, (size, padded) in enumerate(zip(shape_of(op.operand), shape_of(op.result), strict=True)):
        steps, region = (padded, 1) if size > 1 else (1, padded)
        block.add(steps, {0: dim}, {0: dim}, PASS_THROUGH if size == padded else PERMUTATION, size)
        block.see_operand(0, dim, region, -low[dim], 1 + interior[dim])
        block.see_result(0, dim, region)
    return 0


@register("stablehlo.concatenate")
def concatenate(op: ConcatenateOp, block: BlockBuilder) -> float:
    """Read each element of the result from the operand that has it; the other operands are padded there."""
    along = op.dimension.value.data
    for dim, size in enumerate(shape_of(op.result)):
        kind: FactorKind | None = rules.concatenation_kind(op) if dim == along else None
        block.add(size, dict.fromkeys(range(len(op.operands)), dim), {0: dim}, kind)
    offset = 0
    for number, operand in enumerate(op.operands):
        block.see_operand(number, along, offset=-offset)
        offset += shape_of(operand)[along]
    return 0


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
