"""The layouts of a reshape's operand and result, and the elements that devices exchange from one to the other.

A reshape keeps the order of elements, so most layouts give each device one interval of them. A tensor of 6 over 4
devices reshaped to 2x3, both dimensions split in two, where a dot is an element that fills up:

    device    has       needs
    0         0 1       0 1
    1         2 3       2 .
    2         4 5       3 4
    3         . .       5 .

So does one of 3x3 reshaped to 9, each split over 2 devices: device 0 has six elements and needs five, device 1 has
three and needs four.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, product
from typing import TypeVar

from sdy.axes import AxisRef, merge_sub_axes
from sdy.mesh import Mesh
from sdy.passes.common.reshard_reuse import strides
from sdy.passes.spmd.layout import Layout
from sdy.passes.spmd.reach import Exchange, Reach
from sdy.sharding import DimSharding, TensorSharding

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Group:
    """Dimensions of the operand and of the result that have the same elements, and no fewer of them do."""

    before: range
    after: range


@dataclass(frozen=True)
class ReshapedLayouts:
    """The layouts of operand and result, which are over one mesh and have elements."""

    before: Layout
    after: Layout

    @cached_property
    def groups(self) -> list[Group]:
        """All groups, in order."""
        return list(groups_of_dims(self.before.shape, self.after.shape))

    @cached_property
    def moving(self) -> list[Group]:
        """The uneven groups of which devices have other elements on one side than on the other."""
        return [group for group in self.groups if self.is_uneven(group) and not self.has_same_parts([group])]

    def is_uneven(self, group: Group) -> bool:
        """Whether axes do not divide a dimension of the group."""
        return any(dim in self.before.uneven_dims for dim in group.before) or any(
            dim in self.after.uneven_dims for dim in group.after
        )

    def has_same_parts(self, groups: Sequence[Group]) -> bool:
        """Whether each device has the same elements of operand and result, as far as `groups` are concerned."""
        before = self.before.without({dim for group in self.groups if group not in groups for dim in group.before})
        after = self.after.without({dim for group in self.groups if group not in groups for dim in group.after})
        assert before.sharding is not None
        assert after.sharding is not None
        return strides(before.sharding, before.shape, before.mesh) == strides(after.sharding, after.shape, after.mesh)

    def axes(self, groups: Sequence[Group]) -> list[AxisRef]:
        """The axes that split dimensions of `groups`."""
        return [axis for g in groups for dim in g.before for axis in self.before.axes[dim]] + [
            axis for g in groups for dim in g.after for axis in self.after.axes[dim]
        ]

    def exchanges(self, plan: Callable[[Reach], Exchange]) -> list[Exchange] | None:
        """Plan the exchange along each of the groups that move, flattened.

        Returns:
            The exchanges, or None where a part is not one interval, another group has other parts, or it does not pay.
        """
        if not self.has_same_parts([group for group in self.groups if group not in self.moving]):
            return None
        found: list[Exchange] = []
        for group in self.moving:
            reach = self._reach(group)
            if reach is None or not (exchange := plan(reach)).pays:
                return None
            found.append(exchange)
        return found

    @property
    def pads_groups_alike(self) -> bool:
        """Whether the reshape of the padded operand is the padded result.

        That is so if the padding is behind all elements of its group, and there is as much of it on both sides.
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
        """The dimensions that the groups that move become where they are flattened in the operand."""
        sizes = [1 if group in self.moving else len(group.before) for group in self.groups]
        return [sum(sizes[:index]) for index, group in enumerate(self.groups) if group in self.moving]

    def flattened_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return `shape`, that of the operand or of its parts, with each of the groups that move as one dimension."""
        return tuple(chain(*(self._flattened(group, shape, math.prod) for group in self.groups)))

    def flattened_sharding(self) -> TensorSharding:
        """Return the operand's sharding with each of the groups that move as one dimension."""
        assert self.before.sharding is not None
        dims = chain(*(self._flattened(group, self.before.sharding.dims, self._merged) for group in self.groups))
        return replace(self.before.sharding, dims=tuple(dims))

    def _merged(self, dims: Sequence[DimSharding]) -> DimSharding:
        return DimSharding(merge_sub_axes([axis for dim in dims for axis in dim.axes], self.before.mesh))

    def _flattened(self, group: Group, of_dims: Sequence[T], flatten: Callable[[Sequence[T]], T]) -> Sequence[T]:
        own = [of_dims[dim] for dim in group.before]
        return [flatten(own)] if group in self.moving else own

    def _reach(self, group: Group) -> Reach | None:
        """Return what each part of the result needs of the operand; None where these are not intervals in one order."""
        before, after = _intervals(self.before, group.before), _intervals(self.after, group.after)
        if before is None or after is None or before.axes != after.axes:
            return None
        if any(start != part * before.length for part, start in enumerate(before.starts) if before.counts[part]):
            return None
        size = math.prod(self.before.shape[dim] for dim in group.before)
        return Reach(size, before.length, after.starts, tuple(map(range, after.counts)), after.length)


@dataclass(frozen=True, slots=True)
class _Intervals:
    """Intervals of a row of elements: those of one part each, `axes` numbering the parts.

    Part t has `length` places from `starts[t]` on, of which the first `counts[t]` are elements.
    """

    axes: tuple[AxisRef, ...]
    length: int
    starts: tuple[int, ...]
    counts: tuple[int, ...]


def carry_over(
    sharding: TensorSharding, shape: Sequence[int], new_shape: Sequence[int], mesh: Mesh
) -> tuple[TensorSharding, TensorSharding]:
    """Return the part of `sharding` that splits a tensor into intervals, and a sharding of its reshape like that.

    Of each group, the axes up to the first dimension of which a part has several rows stay. In the reshaped tensor of
    `new_shape`, they split the first dimension of the group with more than one row. Where that is uneven, devices have
    about the same elements, and exchange some of them with their neighbours.
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
    """Return the interval that each part of `dims` is, or None where a part is not one."""
    axes = merge_sub_axes([axis for dim in dims for axis in layout.axes[dim]], layout.mesh)
    # The first dimension is there for a group without any, that of a scalar.
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
        starts.append(_row_major(begins, shape))
        is_inside = all(begin < size for begin, size in zip(begins, shape, strict=True))
        counts.append(min(shards[last], shape[last] - begins[last]) * inner if is_inside else 0)
    return _Intervals(axes, shards[last] * inner, tuple(starts), tuple(counts))


def _row_major(place: Sequence[int], shape: Sequence[int]) -> int:
    index = 0
    for begin, size in zip(place, shape, strict=True):
        index = index * size + begin
    return index


def _pads_end(layout: Layout, dims: Sequence[int]) -> bool:
    """Whether only the first dimension of more than one place is padded, if any."""
    larger = [dim for dim in dims if layout.padded_shape[dim] > 1]
    return not any(dim in layout.uneven_dims for dim in larger[1:])


def groups_of_dims(before: Sequence[int], after: Sequence[int]) -> Iterator[Group]:
    """Yield the shortest runs of dimensions with as many elements on both sides.

    Sizes of 1 join the next run, or the last one.
    """
    first, other = 0, 0
    while first < len(before) or other < len(after):
        end, other_end = min(first + 1, len(before)), min(other + 1, len(after))
        while (size := math.prod(before[first:end])) != (other_size := math.prod(after[other:other_end])):
            if size < other_size:
                end += 1
            else:
                other_end += 1
        if math.prod(before[end:]) == math.prod(after[other_end:]) == 1:
            end, other_end = len(before), len(after)
        yield Group(range(first, end), range(other, other_end))
        first, other = end, other_end
