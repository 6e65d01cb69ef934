"""Elementwise operations, whose steps are the elements of their results."""

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation

from sdy.blocks.builder import BlockBuilder
from sdy.blocks.registry import NoBlocks, register
from sdy.ir.shapes import shape_of
from sdy.rules.elementwise import POINTWISE


@register(*(f"stablehlo.{name}" for name in (*POINTWISE.split(), "clamp", "select")))
def pointwise(op: Operation, block: BlockBuilder) -> float:
    """Add an axis per dimension; every step reads scalar operands."""
    if not isinstance(op.results[0].type, TensorType):
        raise NoBlocks
    for dim, size in enumerate(shape_of(op.results[0])):
        full = (number for number, operand in enumerate(op.operands) if shape_of(operand))
        block.add(size, dict.fromkeys(full, dim), {0: dim})
    return 1
