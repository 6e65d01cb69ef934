"""The aggressive strategy: if two factors of a tensor compete for an axis, the more valuable factor gets it.

The strategy first computes, for each factor, the axes that its tensors agree on, and ignores conflicts between factors.
Each tensor then takes these axes factor by factor, in an order of preference; a later factor gets the axes that earlier
factors left. The tensors of an operation may thus end up with incompatible shardings, at the price of a reshard, where
the basic strategy would have sharded none of them.
"""

import math
from collections.abc import Sequence

from sdy.axes import Axes, AxisRef, is_prefix, total_size
from sdy.factors import ShardingProjection, TensorFactors
from sdy.mesh import Mesh
from sdy.passes.propagation.basic import (
    compatible_axes,
    is_strict_prefix,
    prefix_within_factor,
    prefix_without_other_factors,
    truncate_at_conflict,
)
from sdy.passes.propagation.directions import Direction


def propagate(
    projection: ShardingProjection,
    directions: Sequence[Direction],
    factor_sizes: Sequence[int],
    mesh: Mesh,
    conservative: bool,
    is_elementwise: bool,
) -> set[int]:
    """Extend the factor shardings in `projection` in place.

    An operand of an elementwise operation gets no axis that the results cannot take: a replicated result would leave
    its operands sharded in vain.

    Args:
        projection: The shardings of the operands and results, by factor.
        directions: The direction of propagation along each factor.
        factor_sizes: The size of each factor.
        mesh: The mesh of all axes.
        conservative: Do not propagate sub-axes.
        is_elementwise: Whether the operation is elementwise.

    Returns:
        The positions of the tensors whose shardings changed, operands before results.
    """
    proposed = [compatible_axes(projection, factor, direction) for factor, direction in enumerate(directions)]
    if not any(_gains(tensor, factor, axes) for factor, axes in enumerate(proposed) for tensor in projection.tensors):
        return set()
    order = _by_preference(projection, proposed, factor_sizes, mesh, is_elementwise)
    changed: set[int] = set()

    def expand(position: int, tensor: TensorFactors, limits: Sequence[TensorFactors]) -> None:
        for factor in order:
            if not _gains(tensor, factor, proposed[factor]):
                continue
            axes = _acceptable(tensor, factor, proposed[factor], factor_sizes[factor], mesh, conservative)
            for limit in limits if axes else ():
                if factor in limit.factors and is_strict_prefix(limit.factors[factor].axes, axes):
                    axes = limit.factors[factor].axes
            if axes and _gains(tensor, factor, axes):
                tensor.factors[factor].axes = axes
                changed.add(position)

    # Results come first, since their axes limit those of the operands of elementwise operations.
    for position, tensor in enumerate(projection.results, len(projection.operands)):
        expand(position, tensor, ())
    for position, tensor in enumerate(projection.operands):
        expand(position, tensor, projection.results if is_elementwise else ())
    return changed


def _gains(tensor: TensorFactors, factor: int, axes: Axes) -> bool:
    """Return whether `tensor` has `factor`, and `axes` would shard it further along that factor."""
    sharding = tensor.factors.get(factor)
    return sharding is not None and is_strict_prefix(sharding.axes, axes)


def _by_preference(
    projection: ShardingProjection,
    proposed: Sequence[Axes],
    factor_sizes: Sequence[int],
    mesh: Mesh,
    is_elementwise: bool,
) -> list[int]:
    """Sort the factors by the size of the tensor that their axes come from, the largest first.

    Ties go to the most sharded factor (in elementwise operations, whose tensors all have the same size), then to the
    factor whose source tensor comes first, then to the lowest factor number.
    """
    sources = _source_tensors(projection, proposed, factor_sizes)

    def key(factor: int) -> tuple[int, int, int, int]:
        size, position = sources[factor]
        shards = total_size(proposed[factor], mesh) if is_elementwise else 0
        return -size, -shards, position, factor

    return sorted(range(len(factor_sizes)), key=key)


def _source_tensors(
    projection: ShardingProjection, proposed: Sequence[Axes], factor_sizes: Sequence[int]
) -> list[tuple[int, int]]:
    """Return, for each factor, the number of elements and the position of the largest tensor with all proposed axes."""
    sources = [(-1, -1)] * len(factor_sizes)
    for position, tensor in enumerate(projection.tensors):
        size = math.prod(factor_sizes[factor] for factor in tensor.factors)
        for factor, sharding in tensor.factors.items():
            if proposed[factor] and is_prefix(proposed[factor], sharding.axes) and size > sources[factor][0]:
                sources[factor] = (size, position)
    return sources


def _acceptable(
    tensor: TensorFactors, factor: int, axes: Axes, factor_size: int, mesh: Mesh, conservative: bool
) -> Axes:
    """Return the prefix of `axes` that `factor` can take beside the tensor's other factors; () if it adds no axis."""
    sharding = tensor.factors[factor]

    def free_within(axis: AxisRef, sharded_size: int) -> AxisRef | None:
        return prefix_within_factor(axis, tensor, sharding, sharded_size, factor_size, mesh)

    def free_of_others(axis: AxisRef, sharded_size: int) -> AxisRef | None:
        return prefix_without_other_factors(axis, tensor, factor)

    axes = truncate_at_conflict(axes, free_within, mesh, conservative)
    if not is_strict_prefix(sharding.axes, axes):
        return ()
    return truncate_at_conflict(axes, free_of_others, mesh, conservative)
