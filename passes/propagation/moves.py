"""The axes that a propagation step moved: from which tensor to which tensor, along which factor.

Moves are derived from the projections before and after the step. If the axes of a factor grew in a tensor, their source
is the first tensor, operands before results, that had all of these axes before. Sub-axes that move to adjacent factors
of one dimension are merged: the reshape `([i], [j])->([ij])` with i sharded along `"x":(1)2` and j along `"x":(2)4`
moves `"x"`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from sdy.axes import Axes, AxisRef, is_prefix
from sdy.factors import ShardingProjection, TensorFactors
from sdy.mesh import Mesh
from sdy.rule import OpShardingRule, TensorMapping


class Move(NamedTuple):
    """An axis that a step moved from one tensor to another."""

    axis: AxisRef
    source: int
    """The position of the source tensor, operands first."""
    target: int
    """The position of the target tensor."""
    factor: int
    """The factor; the minor-most one if several factors get sub-axes of the axis."""


def moves(rule: OpShardingRule, before: ShardingProjection, after: ShardingProjection, mesh: Mesh) -> list[Move]:
    """Return the moves between two projections by `rule`, ordered by target."""
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
            had, has = _axes(sources[target], factor), _axes(new, factor)
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
            # The last old axis may be a prefix of the axis that is there now.
            kept = len(had) - 1 if had and axes[len(had) - 1] != had[-1] else len(had)
            for axis in axes[kept:]:
                moved.setdefault(axis, Move(axis, source, target, factor))
    return list(moved.values())


def _axes(tensor: TensorFactors, factor: int) -> Axes:
    """The axes that split a factor: none behind one whose axes overflow, where a projection ends."""
    return tensor.factors[factor].axes if factor in tensor.factors else ()


def _first_with(axes: Axes, factor: int, tensors: Sequence[TensorFactors]) -> int | None:
    for position, tensor in enumerate(tensors):
        if is_prefix(axes, _axes(tensor, factor)):
            return position
    return None
