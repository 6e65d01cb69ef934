"""The basic strategy: propagate only what no operand or result contradicts.

For each factor, the axes that all tensors agree on, major to minor, up to the first conflict. Two kinds of conflict end
that list: tensors that split the factor itself by different axes, and a tensor in which the axis cannot stand, because
another factor uses it, or because it is replicated or unreduced, closed, or does not fit.
"""

import math
from collections.abc import Callable, Sequence

from sdy.axes import AxisRef, is_prefix
from sdy.factors import Axes, FactorSharding, ShardingProjection, TensorFactors
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
    """Extend the factor shardings in `projection`; return the positions of the tensors, results last, that changed.

    `conservative` keeps sub-axes from being propagated. Being elementwise makes no difference to this strategy.
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
    """The axes by which every tensor can split `factor`."""

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
    """Whether `second` begins with `first` and says more."""
    return first != second and is_prefix(first, second)


def compatible_axes(projection: ShardingProjection, factor: int, direction: Direction) -> Axes:
    """The longest axes for `factor` that its tensors agree on, whatever else they hold.

    Only the tensors that `direction` starts from may lengthen the list; the others can only contradict it.
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
    """The axes that `old` and `new` agree on, and whether a further tensor may still lengthen them.

    With `can_expand` false, `new` does not lengthen `old`.

        ["a"], ["a", "b"]            -> ["a", "b"], or ["a"] if it may not expand
        ["a", "b"], ["a", "c"]       -> ["a"]
        ["a":(1)2, "b"], ["a":(1)4]  -> ["a":(1)2]: the rest of "a" would have to follow where "b" stands
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
    """The major part of `axis` that no factor of `tensor` but `factor` uses."""
    free: AxisRef | None = axis
    for other, sharding in tensor.factors.items():
        if other != factor:
            free = _prefix_without(free, sharding.overflow)
            free = _prefix_without(free, sharding.axes)
    return free


def prefix_within_factor(
    axis: AxisRef, tensor: TensorFactors, sharding: FactorSharding, sharded_size: int, factor_size: int, mesh: Mesh
) -> AxisRef | None:
    """The major part of `axis` by which `tensor` can split a factor of `factor_size`, or already does.

    `sharding` is what `tensor` has for the factor; the axes before `axis` make `sharded_size` parts.
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
    """`axes` up to the first of which `free_prefix` leaves only a part, that part included.

    `free_prefix` is given an axis and the number of parts that the axes before it make.
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
