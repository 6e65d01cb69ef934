"""Layouts of the operand and result of a reshape, and the elements that devices exchange between them.

A reshape preserves the row-major order of elements, and in most layouts each shard is an interval of that order. For a
tensor of 6 elements over 4 devices reshaped to 2x3, with both dimensions split in two, where a dot is padding:

    device    has       needs
    0         0 1       0 1
    1         2 3       2 .
    2         4 5       3 4
    3         . .       5 .

For 3x3 reshaped to 9, each split over 2 devices, device 0 has six elements and needs five, device 1 has three and needs
four.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, product
from typing import TypeVar

from sdy.axes import AxisRef, merge_sub_axes
from sdy.mesh import Mesh
from sdy.passes.common.reshard_reuse import has_same_parts
from sdy.passes.spmd.shards.halo import Exchange, ReadRanges
from sdy.passes.spmd.shards.layout import Layout
from sdy.sharding import DimSharding, TensorSharding

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Group:
    """A minimal run of operand dimensions and of result dimensions with the same number of elements."""

    before: range
    after: range


@dataclass(frozen=True)
class ReshapedLayouts:
    """The layouts of the operand and the result of a reshape, over one mesh and not empty."""

    before: Layout
    after: Layout

    @cached_property
    def groups(self) -> list[Group]:
        """The groups of dimensions, in order."""
        return list(groups_of_dims(self.before.shape, self.after.shape))

    @cached_property
    def moving(self) -> list[Group]:
        """The uneven groups whose shards have different elements in the operand and in the result."""
        return [group for group in self.groups if self.is_uneven(group) and not self.has_same_parts([group])]

    @property
    def regroups_moving_dims(self) -> bool:
        """True if a moving group has several dimensions before and after the reshape; Shardy replicates it."""
        return any(len(group.before) > 1 and len(group.after) > 1 for group in self.moving)

    def is_uneven(self, group: Group) -> bool:
        """Return whether a dimension of the group is uneven."""
        return any(dim in self.before.uneven_dims for dim in group.before) or any(
            dim in self.after.uneven_dims for dim in group.after
        )

    def has_same_parts(self, groups: Sequence[Group]) -> bool:
        """Return whether, along `groups`, each device's shards of operand and result have the same elements."""
        return all(map(self._has_same_parts, groups))

    def _has_same_parts(self, group: Group) -> bool:
        if self.is_uneven(group):
            before, after = _intervals(self.before, group.before), _intervals(self.after, group.after)
            return before is not None and before == after
        before, after = (
            layout.without({dim for dim in layout.split_dims if dim not in dims})
            for layout, dims in ((self.before, group.before), (self.after, group.after))
        )
        assert before.sharding is not None
        assert after.sharding is not None
        return has_same_parts(before.sharding, before.shape, after.sharding, after.shape, before.mesh)

    def axes(self, groups: Sequence[Group]) -> list[AxisRef]:
        """Return the axes of the dimensions of `groups`, in the operand and then in the result."""
        return [axis for g in groups for dim in g.before for axis in self.before.axes[dim]] + [
            axis for g in groups for dim in g.after for axis in self.after.axes[dim]
        ]

    def exchanges(self, plan: Callable[[ReadRanges], Exchange]) -> list[Exchange] | None:
        """Plan the exchange along each moving group, flattened to one dimension.

        Returns:
            The exchanges, or None if a shard is not one interval, a group that does not move has different shards in
            operand and result, or an exchange does not pay.
        """
        if not self.has_same_parts([group for group in self.groups if group not in self.moving]):
            return None
        exchanges: list[Exchange] = []
        for group in self.moving:
            ranges = self._ranges(group)
            if ranges is None or not (exchange := plan(ranges)).pays:
                return None
            exchanges.append(exchange)
        return exchanges

    @property
    def pads_groups_alike(self) -> bool:
        """True if the reshape of the padded operand is the padded result.

        This holds if the padding of each group follows all its elements and has the same size in operand and result.
        """
        return all(
            _pads_end(self.before, group.before)
            and _pads_end(self.after, group.after)
            and math.prod(self.before.padded_shape[dim] for dim in group.before)
            == math.prod(self.after.padded_shape[dim] for dim in group.after)
            for group in self.groups
        )

    @property
    def flat_dims(self) -> list[int]:
        """The dimensions of the moving groups in the flattened operand."""
        sizes = [1 if group in self.moving else len(group.before) for group in self.groups]
        return [sum(sizes[:index]) for index, group in enumerate(self.groups) if group in self.moving]

    def flattened_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return `shape`, of the operand or its shards, with each moving group flattened to one dimension."""
        return tuple(chain(*(self._flattened(group, shape, math.prod) for group in self.groups)))

    def flattened_sharding(self) -> TensorSharding:
        """Return the sharding of the operand with each moving group flattened to one dimension."""
        assert self.before.sharding is not None
        dims = chain(*(self._flattened(group, self.before.sharding.dims, self._merged) for group in self.groups))
        return replace(self.before.sharding, dims=tuple(dims))

    def _merged(self, dims: Sequence[DimSharding]) -> DimSharding:
        return DimSharding(merge_sub_axes([axis for dim in dims for axis in dim.axes], self.before.mesh))

    def _flattened(self, group: Group, of_dims: Sequence[T], flatten: Callable[[Sequence[T]], T]) -> Sequence[T]:
        own = [of_dims[dim] for dim in group.before]
        return [flatten(own)] if group in self.moving else own

    def _ranges(self, group: Group) -> ReadRanges | None:
        """Return the elements of the flattened operand that each result shard needs, or None if not intervals."""
        before, after = _intervals(self.before, group.before), _intervals(self.after, group.after)
        if before is None or after is None or before.axes != after.axes:
            return None
        if any(start != part * before.length for part, start in enumerate(before.starts) if before.counts[part]):
            return None
        size = math.prod(self.before.shape[dim] for dim in group.before)
        return ReadRanges(size, before.length, after.starts, tuple(map(range, after.counts)), after.length)


@dataclass(frozen=True, slots=True)
class _Intervals:
    """The shards of a group as intervals in row-major order.

    Shard t, numbered along `axes`, has `length` positions from `starts[t]` on, the first `counts[t]` of them elements
    and the others padding. A shard without elements starts at 0.
    """

    axes: tuple[AxisRef, ...]
    length: int
    starts: tuple[int, ...]
    counts: tuple[int, ...]


def carry_over(
    sharding: TensorSharding, shape: Sequence[int], new_shape: Sequence[int], mesh: Mesh
) -> tuple[TensorSharding, TensorSharding]:
    """Split `sharding` for a reshape: return the axes whose shards are intervals, and the result sharding with them.

    In each group, the axes are kept up to the first dimension in which a shard has several rows. In the result, they
    shard the first dimension of the group with more than one row. If that is uneven, devices exchange some elements
    with their neighbors.

    Args:
        sharding: The sharding of the operand.
        shape: The shape of the operand.
        new_shape: The shape of the result.
        mesh: The mesh of `sharding`.

    Returns:
        The kept sharding of the operand, and the sharding of the result.
    """
    kept = [DimSharding()] * len(shape)
    carried = [DimSharding()] * len(new_shape)
    for group in groups_of_dims(shape, new_shape):
        axes: tuple[AxisRef, ...] = ()
        for dim in group.before:
            kept[dim] = DimSharding(sharding.dims[dim].axes)
            axes += kept[dim].axes
            if shape[dim] > kept[dim].sharded_size(mesh):
                break
        if axes and group.after:
            first = next((dim for dim in group.after if new_shape[dim] > 1), group.after[0])
            carried[first] = DimSharding(merge_sub_axes(axes, mesh))
    return TensorSharding(sharding.mesh, tuple(kept)), TensorSharding(sharding.mesh, tuple(carried))


def _intervals(layout: Layout, dims: Sequence[int]) -> _Intervals | None:
    """Return the shards of `dims` as intervals, or None if a shard is not one interval."""
    axes = merge_sub_axes([axis for dim in dims for axis in layout.axes[dim]], layout.mesh)
    # The leading 1 gives a group without dimensions, that of a scalar, a dimension.
    shape = [1, *(layout.shape[dim] for dim in dims)]
    parts = [1, *(layout.parts(dim) for dim in dims)]
    shards = [1, *(layout.padded_shape[dim] // layout.parts(dim) for dim in dims)]
    last = max((index for index, number in enumerate(parts) if number > 1), default=0)
    if any(shard > 1 for shard in shards[:last]):
        return None
    inner = math.prod(shape[last + 1 :])
    starts: list[int] = []
    counts: list[int] = []
    for places in product(*map(range, parts)):
        begins = [place * shard for place, shard in zip(places, shards, strict=True)]
        is_inside = all(begin < size for begin, size in zip(begins, shape, strict=True))
        starts.append(_row_major(begins, shape) if is_inside else 0)
        counts.append(min(shards[last], shape[last] - begins[last]) * inner if is_inside else 0)
    return _Intervals(axes, shards[last] * inner, tuple(starts), tuple(counts))


def _row_major(place: Sequence[int], shape: Sequence[int]) -> int:
    index = 0
    for begin, size in zip(place, shape, strict=True):
        index = index * size + begin
    return index


def _pads_end(layout: Layout, dims: Sequence[int]) -> bool:
    """Return whether at most the first dimension of padded size greater than 1 is padded."""
    larger = [dim for dim in dims if layout.padded_shape[dim] > 1]
    return not any(dim in layout.uneven_dims for dim in larger[1:])


def groups_of_dims(before: Sequence[int], after: Sequence[int]) -> Iterator[Group]:
    """Yield the minimal runs of dimensions with the same number of elements before and after a reshape.

    Dimensions of size 1 join the next run. Trailing ones form a run if both shapes have some; otherwise they join the
    last run.
    """
    first, other = 0, 0
    while first < len(before) or other < len(after):
        end, other_end = min(first + 1, len(before)), min(other + 1, len(after))
        while (size := math.prod(before[first:end])) != (other_size := math.prod(after[other:other_end])):
            if size < other_size:
                end += 1
            else:
                other_end += 1
        has_trailing = end < len(before) and other_end < len(after)
        if math.prod(before[end:]) == math.prod(after[other_end:]) == 1 and not has_trailing:
            end, other_end = len(before), len(after)
        yield Group(range(first, end), range(other, other_end))
        first, other = end, other_end
