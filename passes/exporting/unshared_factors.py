"""Factors that one tensor of a convolution has alone: nobody else can be split with it.

A window of 5 over 8 rows makes 4 places. As a dimension has room for the larger factor only, the input is split by the
elements of the window, with the kernel, and nothing tells it how the result is split, by place.
"""

from collections import Counter
from dataclasses import replace

from sdy.rule import OpShardingRule


def whole_unless_shared(rule: OpShardingRule) -> OpShardingRule:
    """`rule`, where a factor is needed whole that is in one tensor only."""
    tensors = Counter(factor for tensor in rule.tensors for factor in {each for dim in tensor for each in dim})
    alone = {factor for factor, count in tensors.items() if count == 1}
    return replace(
        rule,
        reduction=tuple(factor for factor in rule.reduction if factor not in alone),
        permutation=tuple(factor for factor in rule.permutation if factor not in alone),
        need_replication=tuple(sorted({*rule.need_replication, *alone})),
    )
