"""Concatenations along a split dimension, whose result is split like what most of it comes from.

Along the dimension x, over 4 devices, the rows of `a` and `b` become those of the result:

    device    has of a and b    has of the result
    0         a0 a1 a2 a3       a0 a1 a2 a3 a4
    1         a4 a5 a6 a7       a5 a6 a7 a8 a9

so most of what a device needs it has, or its neighbour. To make the dimension whole, or to split another one instead,
would move all of it, there and back.
"""

from collections.abc import Sequence
from dataclasses import replace

from sdy.ir.shapes import shape
from sdy.rule import OpShardingRule
from sdy.sharding import TensorSharding
from sdy.stablehlo.shape import ConcatenateOp


def rule_of_exchange(
    op: ConcatenateOp, rule: OpShardingRule, shardings: Sequence[TensorSharding | None]
) -> OpShardingRule:
    """The rule of `op` by which its elements may move between devices, if it is such a concatenation.

    `rule` is its own, `shardings` are those of its operands and then of its result.
    """
    dim = op.dimension.value.data
    largest = max(range(len(op.operands)), key=lambda index: shape(op.operands[index].type)[dim])
    before, after = (sharding.dim_axes if sharding else () for sharding in (shardings[largest], shardings[-1]))
    # What is on a single device has no dimensions.
    if not before or not after or not after[dim] or before[dim] != after[dim]:
        return rule
    moving = set(rule.results[0][dim]) & set(rule.need_replication)
    return replace(
        rule,
        need_replication=tuple(factor for factor in rule.need_replication if factor not in moving),
        permutation=tuple(sorted((*rule.permutation, *moving))),
    )
