"""Operations that move elements: broadcast, transpose, reverse, slice, pad, concatenate."""

from sdy.blocks.builder import BlockBuilder
from sdy.blocks.registry import register
from sdy.ir.shapes import shape_of
from sdy.rule import FactorKind
from sdy.rules import shape as rules
from sdy.stablehlo import BroadcastInDimOp, ConcatenateOp, PadOp, ReverseOp, SliceOp, TransposeOp


@register("stablehlo.broadcast_in_dim")
def broadcast_in_dim(op: BroadcastInDimOp, block: BlockBuilder) -> float:
    """Each element of the result is read from one; those of an expanded dimension all from the same."""
    rules.broadcast_in_dim(op, block)
    return 0


@register("stablehlo.transpose")
def transpose(op: TransposeOp, block: BlockBuilder) -> float:
    """Each element of the result is read from one."""
    rules.transpose(op, block)
    return 0


@register("stablehlo.reverse")
def reverse(op: ReverseOp, block: BlockBuilder) -> float:
    """Reversed dimensions are read backwards, from the last element on."""
    reversed_dims = op.dimensions.get_values()
    for dim, size in enumerate(shape_of(op.result)):
        backwards = dim in reversed_dims
        block.add(size, {0: (dim, -1 if backwards else 1)}, {0: dim}, FactorKind.PERMUTATION if backwards else None)
        if backwards:
            block.see_operand(0, dim, offset=size - 1)
    return 0


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
