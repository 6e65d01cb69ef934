"""The basic strategy: propagate only axes that are compatible with all operands and results.

Each factor gets the axes that all tensors agree on, major to minor, up to the first conflict. There are two kinds of
conflict: two tensors shard the factor along different axes, or a tensor cannot be sharded along the axis: another
factor uses it, the tensor is replicated or unreduced along it, the dimension is closed, or the axis does not divide the
factor.
"""

import math
from collections.abc import Callable, Sequence

from sdy.axes import Axes, AxisRef, is_prefix
from sdy.factors import FactorSharding, ShardingProjection, TensorFactors
from sdy.mesh import Mesh
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

    Args:
        projection: The shardings of the operands and results, by factor.
        directions: The direction of propagation along each factor.
        factor_sizes: The size of each factor.
        mesh: The mesh of all axes.
        conservative: Do not propagate sub-axes.
        is_elementwise: Unused: this strategy treats elementwise operations like any other.

    Returns:
        The positions of the tensors whose shardings changed, operands before results.
    """
    changed: set[int] = set()
    tensors = projection.tensors
    for factor, (direction, size) in enumerate(zip(directions, factor_sizes, strict=True)):
        axes = compatible_axes_without_conflicts(projection, factor, direction, size, mesh, conservative)
        for position, tensor in enumerate(tensors):
            sharding = tensor.factors.get(factor)
            if sharding is not None and is_strict_prefix(sharding.axes, axes):
                sharding.axes = axes
                changed.add(position)
    return changed


def compatible_axes_without_conflicts(
    projection: ShardingProjection, factor: int, direction: Direction, factor_size: int, mesh: Mesh, conservative: bool
) -> Axes:
    """Return the axes along which every tensor can shard `factor`."""

    def free_prefix(axis: AxisRef, sharded_size: int) -> AxisRef | None:
        free: AxisRef | None = axis
        for tensor in projection.tensors:
            free = free and prefix_without_other_factors(free, tensor, factor)
            sharding = tensor.factors.get(factor)
            if free and sharding is not None:
                free = prefix_within_factor(free, tensor, sharding, sharded_size, factor_size, mesh)
        return free

    return truncate_at_conflict(compatible_axes(projection, factor, direction), free_prefix, mesh, conservative)


def is_strict_prefix(first: Axes, second: Axes) -> bool:
    """Return whether `first` is a prefix of `second` and differs from it."""
    return first != second and is_prefix(first, second)


def compatible_axes(projection: ShardingProjection, factor: int, direction: Direction) -> Axes:
    """Return the longest list of axes for `factor` that its tensors agree on, ignoring their other factors.

    Only the sources of `direction` (operands for forward, results for backward) can extend the list; the other tensors
    can only truncate it.
    """
    if direction is Direction.NONE:
        return ()
    first, second = projection.operands, projection.results
    if direction is Direction.BACKWARD:
        first, second = second, first
    axes: Axes = ()
    can_expand = True
    for tensor in first:
        if factor in tensor.factors:
            axes, can_expand = _agree(axes, tensor.factors[factor].axes, can_expand)
    can_expand &= direction is Direction.BOTH
    for tensor in second:
        if factor in tensor.factors:
            axes, can_expand = _agree(axes, tensor.factors[factor].axes, can_expand)
    return axes


def _agree(old: Axes, new: Axes, can_expand: bool) -> tuple[Axes, bool]:
    """Return the axes that `old` and `new` agree on, and whether further tensors can extend them.

    If `can_expand` is false, `new` does not extend `old`.

        ["a"], ["a", "b"]            -> ["a", "b"], or ["a"] without `can_expand`
        ["a", "b"], ["a", "c"]       -> ["a"]
        ["a":(1)2, "b"], ["a":(1)4]  -> ["a":(1)2]: the rest of "a" conflicts with "b"
    """
    shared = min(len(old), len(new))
    agreed: list[AxisRef] = []
    for index in range(shared):
        a, b = old[index], new[index]
        if a == b:
            agreed.append(a)
        elif b.is_prefix_of(a):
            if index + 1 < len(new):
                return (*agreed, b), False
            agreed.append(a)
        elif a.is_prefix_of(b):
            if not can_expand or index + 1 < len(old):
                return (*agreed, a), False
            agreed.append(b)
        else:
            return tuple(agreed), False
    agreed += old[shared:]
    if can_expand:
        agreed += new[shared:]
    return tuple(agreed), can_expand


def prefix_without_other_factors(axis: AxisRef, tensor: TensorFactors, factor: int) -> AxisRef | None:
    """Return the longest prefix of `axis` that no factor of `tensor` other than `factor` uses; None if it is empty."""
    free: AxisRef | None = axis
    for other, sharding in tensor.factors.items():
        if other != factor:
            free = _prefix_without(free, sharding.overflow)
            free = _prefix_without(free, sharding.axes)
    return free


def prefix_within_factor(
    axis: AxisRef, tensor: TensorFactors, sharding: FactorSharding, sharded_size: int, factor_size: int, mesh: Mesh
) -> AxisRef | None:
    """Return the longest prefix of `axis` along which `tensor` can shard a factor, or already does; None if empty.

    Args:
        axis: The axis.
        tensor: The tensor.
        sharding: The present sharding of the factor in `tensor`.
        sharded_size: The product of the sizes of the axes before `axis`.
        factor_size: The size of the factor.
        mesh: The mesh of all axes.
    """
    free = _prefix_without(_prefix_without(axis, tensor.replicated), tensor.unreduced)
    if free is None:
        return None
    if any(present.contains(free) for present in sharding.axes):
        return free
    if not sharding.is_closed and not sharding.overflow:
        if sharding.is_minor_most:
            return free
        if factor_size % sharded_size == 0:
            size = free.size_in(mesh)
            shared = math.gcd(factor_size // sharded_size, size)
            if shared == size:
                return free
            if shared > 1:
                return AxisRef(free.name, free.start, shared)
    if sharding.axes and sharding.axes[-1].is_prefix_of(free):
        return sharding.axes[-1]
    return None


def _prefix_without(axis: AxisRef | None, others: Axes) -> AxisRef | None:
    for other in others:
        axis = axis and axis.prefix_without_overlap(other)
    return axis


def truncate_at_conflict(
    axes: Axes, free_prefix: Callable[[AxisRef, int], AxisRef | None], mesh: Mesh, conservative: bool
) -> Axes:
    """Truncate `axes` at the first conflict, and keep the compatible prefix of the axis that causes it.

    Args:
        axes: The axes, major to minor.
        free_prefix: Called with an axis and the product of the sizes of the axes before it; returns the prefix of the
            axis that causes no conflict, or None.
        mesh: The mesh of all axes.
        conservative: Truncate before the first sub-axis.
    """
    kept: list[AxisRef] = []
    sharded_size = 1
    for axis in axes:
        free = free_prefix(axis, sharded_size)
        if free is None or (conservative and not free.is_full):
            break
        kept.append(free)
        if free != axis:
            break
        sharded_size *= free.size_in(mesh)
    return tuple(kept)
