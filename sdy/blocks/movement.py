"""Slices, pads and concatenations: elements are moved to other places, and some are left out or stand in between.

Operations whose rule says where each element comes from, as transposes, are block operations without being told.
"""

from sdy.blocks.builder import BlockBuilder
from sdy.blocks.registry import register
from sdy.rule import FactorKind
from sdy.rules import shape as rules
from sdy.rules.builder import shape_of
from sdy.stablehlo import ConcatenateOp, PadOp, SliceOp


@register("stablehlo.slice")
def slice_(op: SliceOp, block: BlockBuilder) -> float:
    """Each element of the result is read from one, in strides from the start on."""
    operand, result = shape_of(op.operand), shape_of(op.result)
    for dim, (start, stride) in enumerate(zip(op.start_indices.get_values(), op.strides.get_values(), strict=True)):
        block.add(result[dim], {0: (dim, stride)}, {0: dim}, size=operand[dim])
        block.see_operand(0, dim, offset=start)
    return 0


@register("stablehlo.pad")
def pad(op: PadOp, block: BlockBuilder) -> float:
    """Each element of the operand is written to one; where padding is negative, some of them to none."""
    low, interior = op.edge_padding_low.get_values(), op.interior_padding.get_values()
    for dim, size in enumerate(shape_of(op.operand)):
        block.add(size, {0: dim}, {0: (dim, 1 + interior[dim])})
        block.see_result(0, dim, offset=low[dim])
    return 0


@register("stablehlo.concatenate")
def concatenate(op: ConcatenateOp, block: BlockBuilder) -> float:
    """Each element of the result is read from the one operand that has it; the others have padding there."""
    along = op.dimension.value.data
    for dim, size in enumerate(shape_of(op.result)):
        kind: FactorKind | None = rules.concatenation_kind(op) if dim == along else None
        block.add(size, dict.fromkeys(range(len(op.operands)), dim), {0: dim}, kind)
    offset = 0
    for number, operand in enumerate(op.operands):
        block.see_operand(number, along, offset=-offset)
        offset += shape_of(operand)[along]
    return 0
