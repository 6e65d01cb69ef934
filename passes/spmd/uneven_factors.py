"""Uneven factors: factors of a sharding rule that their axes do not divide."""

from collections.abc import Sequence

from sdy.axes import total_size
from sdy.factors import project
from sdy.mesh import Mesh
from sdy.rule import OpShardingRule
from sdy.sharding import TensorSharding


def uneven_factors(rule: OpShardingRule, shardings: Sequence[TensorSharding | None], mesh: Mesh) -> set[int]:
    """Return the factors that are uneven in one of the shardings of the operands, then the results."""
    filled = [
        sharding or TensorSharding.replicated_closed(mesh, len(mapping))
        for sharding, mapping in zip(shardings, rule.tensors, strict=True)
    ]
    return {
        factor
        for tensor in project(rule, filled, mesh).tensors
        for factor, part in tensor.factors.items()
        if rule.factor_sizes[factor] % total_size((*part.axes, *part.overflow), mesh)
    }
