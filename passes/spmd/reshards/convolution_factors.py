"""Factors of a convolution that must be replicated although its sharding rule allows splitting them.

*Factors of a single tensor.* A window of 5 over 8 rows gives 4 results. The input dimension of 8 has only the larger
of the two factors, the one that it shares with the kernel; the result's factor occurs in no operand, so splitting it
would split no operand.

*Unevenly split factors of a dimension with several factors.* 6 features in 2 groups of 3 cannot be padded such that
two devices have equal shares of each group.
"""

from collections import Counter
from collections.abc import Sequence

from sdy.mesh import Mesh
from sdy.passes.spmd.uneven_factors import uneven_factors
from sdy.rule import OpShardingRule
from sdy.sharding import TensorSharding


def rule_of_convolution(rule: OpShardingRule, shardings: Sequence[TensorSharding | None], mesh: Mesh) -> OpShardingRule:
    """Return the rule of a convolution with the factors that `shardings` cannot split marked as need-replication."""
    tensors = Counter(factor for tensor in rule.tensors for factor in {each for dim in tensor for each in dim})
    of_one_tensor = {factor for factor, count in tensors.items() if count == 1}
    in_composite_dims = {factor for tensor in rule.tensors for dim in tensor if len(dim) > 1 for factor in dim}
    replicated = of_one_tensor | (in_composite_dims & uneven_factors(rule, shardings, mesh))
    return rule.with_replicated(replicated)
