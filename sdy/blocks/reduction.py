"""Reductions: a step combines one element of each input with what the steps before it gave."""

from sdy.blocks.builder import BlockBuilder
from sdy.blocks.registry import register
from sdy.rules import reduction as rules
from sdy.stablehlo import ReduceOp


@register("stablehlo.reduce")
def reduce(op: ReduceOp, block: BlockBuilder) -> float:
    """The axes are the factors of the rule; a step runs the body once."""
    rules.reduce(op, block)
    return len(op.body.block.ops) - 1  # all but what returns their results
