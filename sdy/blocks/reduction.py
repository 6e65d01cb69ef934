"""Reductions: a step combines one element of each input with the accumulated value."""

from sdy.blocks.builder import BlockBuilder
from sdy.blocks.registry import register
from sdy.rules import reduction as rules
from sdy.stablehlo import ReduceOp


@register("stablehlo.reduce")
def reduce(op: ReduceOp, block: BlockBuilder) -> float:
    """Add the factors of the rule as axes; a step runs the body once."""
    rules.reduce(op, block)
    return len(op.body.block.ops) - 1  # without the terminator
