"""Dot products: a step multiplies two elements and adds to a sum over the contracting axes."""

from sdy.blocks.builder import BlockBuilder
from sdy.blocks.registry import register
from sdy.rules import dot as rules
from sdy.stablehlo import DotGeneralOp, DotOp

MULTIPLY_AND_ADD = 2


@register("stablehlo.dot_general")
def dot_general(op: DotGeneralOp, block: BlockBuilder) -> float:
    """Add the factors of the rule as axes."""
    rules.dot_general(op, block)
    return MULTIPLY_AND_ADD


@register("stablehlo.dot")
def dot(op: DotOp, block: BlockBuilder) -> float:
    """Add the factors of the rule as axes."""
    rules.dot(op, block)
    return MULTIPLY_AND_ADD
