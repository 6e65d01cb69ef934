"""What a step moved: which axis went from which tensor to which other one, along which factor.

A step is told by its projections, before and after. A factor whose axes grew in a tensor took them from the first
tensor, operands before results, that had all of these axes before. The parts of an axis that go to neighbouring factors
of one dimension count as the axis that they make up there: the reshape `([i], [j])->([ij])` with i split over
`"x":(1)2` and j over `"x":(2)4` moves `"x"`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from sdy.axes import AxisRef, is_prefix
from sdy.factors import Axes, ShardingProjection, TensorFactors
from sdy.mesh import Mesh
from sdy.rule import OpShardingRule, TensorMapping


class Move(NamedTuple):
    """The way of one axis."""

    axis: AxisRef
    source: int
    """The position of the tensor that it came from, operands first."""
    target: int
    """The position of the tensor that it went to."""
    factor: int
    """The factor, the minor-most where the parts of the axis go to several."""


def moves(rule: OpShardingRule, before: ShardingProjection, after: ShardingProjection, mesh: Mesh) -> list[Move]:
    """What moved between two projections by `rule`, by target."""
    sources = before.tensors
    return [
        move
        for target, (mapping, new) in enumerate(zip(rule.tensors, after.tensors, strict=True))
        for move in _moves_to(target, mapping, sources, new, mesh)
    ]


def _moves_to(
    target: int, mapping: TensorMapping, sources: Sequence[TensorFactors], new: TensorFactors, mesh: Mesh
) -> list[Move]:
    moved: dict[AxisRef, Move] = {}
    for dim_factors in mapping:
        previous: AxisRef | None = None
        for factor in dim_factors:
            had, has = sources[target].factors[factor].axes, new.factors[factor].axes
            if had == has:
                continue
            axes = list(has)
            if previous is not None and previous.can_merge(has[-1]):
                moved.pop(previous, None)
                axes[-1] = previous.merge(has[-1], mesh)
            previous = has[-1]
            source = _first_with(has, factor, sources)
            if source is None:
                continue
            # The last of the axes that were there may have been the major part of what is there now.
            kept = len(had) - 1 if had and axes[len(had) - 1] != had[-1] else len(had)
            for axis in axes[kept:]:
                moved.setdefault(axis, Move(axis, source, target, factor))
    return list(moved.values())


def _first_with(axes: Axes, factor: int, tensors: Sequence[TensorFactors]) -> int | None:
    for position, tensor in enumerate(tensors):
        if factor in tensor.factors and is_prefix(axes, tensor.factors[factor].axes):
            return position
    return None
