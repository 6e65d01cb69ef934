"""Concatenations along a split dimension whose largest operand is sharded like the result.

In a concatenation of a small `b` behind a large `a`, each device needs these rows:

    device    rows of a and b   rows of the result
    0         a0 a1 a2 a3       a0 a1 a2 a3 a4
    1         a4 a5 a6 a7       a5 a6 a7 a8 a9

Each device holds most of its rows of the result already, or its neighbour does. All-gathering the dimension, or
resharding to split another one, would send all rows, twice.
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
    """Return `rule` with the factor of the concatenated dimension as a permutation factor, if an exchange is cheap.

    Otherwise return `rule` itself.

    Args:
        op: The concatenation.
        rule: Its sharding rule, in which the concatenated dimension may need replication.
        shardings: The shardings of its operands, then of its result.
    """
    dim = op.dimension.value.data
    largest = max(range(len(op.operands)), key=lambda index: shape(op.operands[index].type)[dim])
    before, after = (sharding.dim_axes if sharding else () for sharding in (shardings[largest], shardings[-1]))
    # A single-device sharding has no dimensions.
    if not before or not after or not after[dim] or before[dim] != after[dim]:
        return rule
    moving = set(rule.results[0][dim]) & set(rule.need_replication)
    return replace(
        rule,
        need_replication=tuple(factor for factor in rule.need_replication if factor not in moving),
        permutation=tuple(sorted((*rule.permutation, *moving))),
    )
