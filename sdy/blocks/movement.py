"""Slices, pads and concatenations: operations that move elements, and drop some or insert padding.

Operations whose rule determines the source of each element, such as transposes, need no registration here.
"""

from sdy.blocks.builder import BlockBuilder
from sdy.blocks.registry import register
from sdy.rule import FactorKind
from sdy.rules import shape as rules
from sdy.rules.builder import shape_of
from sdy.stablehlo import ConcatenateOp, PadOp, SliceOp


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
    """Write each element of the operand to the result; negative padding drops some of them."""
    low, interior = op.edge_padding_low.get_values(), op.interior_padding.get_values()
    for dim, size in enumerate(shape_of(op.operand)):
        block.add(size, {0: dim}, {0: (dim, 1 + interior[dim])})
        block.see_result(0, dim, offset=low[dim])
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
