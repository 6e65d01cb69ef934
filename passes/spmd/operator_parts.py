"""What splitting the tensors of an annotated operator does to its factors."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sdy.axes import AxisRef, total_size
from sdy.factors import project
from sdy.mesh import Mesh
from sdy.passes.spmd.uneven_factors import uneven_factors
from sdy.rule import OpShardingRule
from sdy.sharding import TensorSharding

if TYPE_CHECKING:
    from sdy.operators.rules import OperatorRule

Axes = tuple[AxisRef, ...]


def factor_axes(rule: "OperatorRule", shardings: Sequence[TensorSharding], mesh: Mesh) -> list[Axes]:
    """The axes that split each factor, of the shardings of operands and results that go together."""
    axes: list[Axes] = [()] * rule.rule.num_factors
    for tensor in project(rule.rule, shardings, mesh).tensors:
        for factor, part in tensor.factors.items():
            axes[factor] = part.axes or axes[factor]
    return axes


def parts(rule: "OperatorRule", axes: Sequence[Axes], mesh: Mesh) -> Mapping[str, int]:
    """The number of parts that each identifier is split into, those aside that are not split."""
    counts = {name: total_size(axes[factor], mesh) for name, factor in rule.factors.items()}
    return {name: count for name, count in counts.items() if count > 1}


def summed_axes_of_results(rule: "OperatorRule", axes: Sequence[Axes]) -> list[Axes]:
    """For each result, the axes along which it is partial."""
    return [tuple(axis for factor in factors for axis in axes[factor]) for factors in rule.summed]


def evenly_split(rule: OpShardingRule, shardings: Sequence[TensorSharding | None], mesh: Mesh) -> OpShardingRule:
    """The rule in which those factors need to be whole that these shardings split into parts of several sizes.

    A function does not know which elements of its arguments were added to make the parts alike.
    """
    return rule.with_whole(uneven_factors(rule, shardings, mesh))
