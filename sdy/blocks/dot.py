"""Dot products: a step multiplies two elements, and what the contracted axes give is summed up."""

from sdy.blocks.builder import BlockBuilder
from sdy.blocks.registry import register
from sdy.rules import dot as rules
from sdy.stablehlo import DotGeneralOp, DotOp

MULTIPLY_AND_ADD = 2


@register("stablehlo.dot_general")
def dot_general(op: DotGeneralOp, block: BlockBuilder) -> float:
    """The axes are the factors of the rule."""
    rules.dot_general(op, block)
    return MULTIPLY_AND_ADD


@register("stablehlo.dot")
def dot(op: DotOp, block: BlockBuilder) -> float:
    """The axes are the factors of the rule."""
    rules.dot(op, block)
    return MULTIPLY_AND_ADD
