"""The aggressive strategy: where factors contend for an axis in a tensor, the more valuable factor gets it.

The axes that each factor's tensors agree on are found first, whatever conflicts there are between factors. Then each
tensor takes them factor by factor, in an order of preference; a later factor gets what earlier ones left. Tensors may
therefore end up split differently, at the price of a reshard, where the basic strategy would have split none.
"""

import math
from collections.abc import Sequence

from sdy.axes import AxisRef, is_prefix, total_size
from sdy.factors import Axes, ShardingProjection, TensorFactors
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
    """Extend the factor shardings in `projection`; return the positions of the tensors, results last, that changed.

    `conservative` keeps sub-axes from being propagated. An operand of an elementwise operation gets no axis that the
    results could not take, so that a replicated result does not leave its operands split for nothing.
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

    # Results come first, since what they could take limits the operands of elementwise operations.
    for position, tensor in enumerate(projection.results, len(projection.operands)):
        expand(position, tensor, ())
    for position, tensor in enumerate(projection.operands):
        expand(position, tensor, projection.results if is_elementwise else ())
    return changed


def _gains(tensor: TensorFactors, factor: int, axes: Axes) -> bool:
    """Whether the tensor has `factor`, and would be split further along it by `axes`."""
    sharding = tensor.factors.get(factor)
    return sharding is not None and is_strict_prefix(sharding.axes, axes)


def _by_preference(
    projection: ShardingProjection,
    proposed: Sequence[Axes],
    factor_sizes: Sequence[int],
    mesh: Mesh,
    is_elementwise: bool,
) -> list[int]:
    """The factors, those first whose axes come from the largest tensor.

    Ties go to the most sharded factor (in elementwise operations, whose tensors have all one size), then to the factor
    whose source comes first, then to the first factor.
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
    """For each factor, the size in elements and the position of the largest tensor that has all its proposed axes."""
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
    """What of `axes` the tensor can take for `factor` beside what its other factors hold by now; () for nothing new."""
    sharding = tensor.factors[factor]

    def free_within(axis: AxisRef, sharded_size: int) -> AxisRef | None:
        return prefix_within_factor(axis, tensor, sharding, sharded_size, factor_size, mesh)

    def free_of_others(axis: AxisRef, sharded_size: int) -> AxisRef | None:
        return prefix_without_other_factors(axis, tensor, factor)

    axes = truncate_at_conflict(axes, free_within, mesh, conservative)
    if not is_strict_prefix(sharding.axes, axes):
        return ()
    return truncate_at_conflict(axes, free_of_others, mesh, conservative)
