"""Reductions: a step combines one element of each input with what the steps before it gave."""

from sdy.blocks.builder import BlockBuilder
from sdy.blocks.registry import register
from sdy.rules.builder import REDUCTION, shape_of
from sdy.stablehlo import ReduceOp


@register("stablehlo.reduce")
def reduce(op: ReduceOp, block: BlockBuilder) -> float:
    """Several inputs are reduced together, each with an initial value; a step runs the body once."""
    reduced = set(op.dimensions.get_values())
    kept = 0
    for dim, size in enumerate(shape_of(op.inputs[0])):
        inputs = dict.fromkeys(range(len(op.inputs)), dim)
        if dim in reduced:
            block.add(size, inputs, {}, REDUCTION)
        else:
            block.add(size, inputs, dict.fromkeys(range(len(op.results)), kept))
            kept += 1
    return len(op.body.block.ops) - 1  # all but what returns their results
