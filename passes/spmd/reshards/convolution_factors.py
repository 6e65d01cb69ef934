"""Factors of a convolution that cannot be split, though its sharding rule does not say so.

Those that only one tensor has, so that no other is split along with it. A window of 5 over 8 rows gives 4 results. A
dimension has no more factors than its size allows, here the larger one only: the input is split by the elements of the
window, as the kernel is, and the result by another factor, which the input does not have.

And those that are not split evenly, where the dimension has another factor as well: 6 features that are 2 groups of 3
cannot be padded so that two devices have as much of each group.
"""

from collections import Counter
from collections.abc import Sequence

from sdy.mesh import Mesh
from sdy.passes.spmd.uneven_factors import uneven_factors
from sdy.rule import OpShardingRule
from sdy.sharding import TensorSharding


def rule_of_convolution(rule: OpShardingRule, shardings: Sequence[TensorSharding | None], mesh: Mesh) -> OpShardingRule:
    """The `rule` of a convolution in which those factors are needed whole that cannot be split by these shardings."""
    tensors = Counter(factor for tensor in rule.tensors for factor in {each for dim in tensor for each in dim})
    alone = {factor for factor, count in tensors.items() if count == 1}
    beside = {factor for tensor in rule.tensors for dim in tensor if len(dim) > 1 for factor in dim}
    whole = alone | (beside & uneven_factors(rule, shardings, mesh))
    return rule.with_replicated(whole)
