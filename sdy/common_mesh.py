"""Several meshes over the same devices, seen as one.

The devices stand on a line of positions, measured as in `sdy.axes` from 1 (major) to their number (minor). On the line
of eight, the axes of `<["x"=4, "y"=2]>` reach from 1 to 4 and from 4 to 8, and the axis of `<["a"=8]>` from 1 to 8. Of
a mesh that lists the devices in another order, an axis may be several such intervals, or intervals that are not in the
order of the line; of some orders it is none. The common mesh has an axis wherever the line is not cut by the end of an
interval: here "x" and "y", of which "a" is both.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from sdy.axes import AxisRef, axis_between, merge_sub_axes, mesh_order
from sdy.box import Ints
from sdy.mesh import Mesh
from sdy.sharding import DimSharding, TensorSharding

Interval: TypeAlias = tuple[int, int]
"""Where a part of the line begins and ends."""

Intervals: TypeAlias = tuple[Interval, ...]


@dataclass(frozen=True)
class CommonMesh:
    """The one mesh, the interval of each of its axes, and those of the axes of the meshes that it is to stand for."""

    mesh: Mesh
    _cuts: Mapping[str, Interval]
    _places: Mapping[Mesh, Mapping[str, Intervals]]

    @classmethod
    def of(cls, meshes: Sequence[Mesh]) -> "CommonMesh":
        """The common mesh of the first of `meshes`, one at least, and of those of the others that go with it.

        It is one of them if that is as finely cut as all. Otherwise its axes are called as in the first, and `x:(1)2`
        where that has no name for a part. A mesh that cannot be cut where those before it are does not go with them,
        as `<["x"=2, "y"=3]>` and `<["a"=3, "b"=2]>`; still some of its shardings have one on the common mesh.
        """
        order = next((mesh for mesh in meshes if not mesh.device_ids), meshes[0]).device_order()
        places = _places(meshes, order)
        ends: set[int] = {1, len(order)}
        together: list[Mesh] = []
        for mesh, intervals in places.items():
            wanted = ends.union(*(interval for of_axis in intervals.values() for interval in of_axis))
            if all(high % low == 0 for low, high in pairwise(sorted(wanted))):
                together.append(mesh)
                ends = wanted
        ways = [_named([*pairwise(sorted(ends))], places[mesh]) for mesh in together]
        named = [Mesh(tuple((name, end // start) for name, (start, end) in way.items()), order) for way in ways]
        return cls.over(next((mesh for mesh in named if mesh in places), named[0]), meshes)

    @classmethod
    def over(cls, mesh: Mesh, others: Iterable[Mesh]) -> "CommonMesh":
        """`mesh` itself as the common mesh, for those shardings on the `others` that have one on it."""
        order = mesh.device_order()
        places = _places((mesh, *others), order)
        return cls(mesh, {axis: interval for axis, of_axis in places[mesh].items() for interval in of_axis}, places)

    def __contains__(self, mesh: Mesh) -> bool:
        """Whether every axis of `mesh` is made of axes of the common mesh."""
        made_of = [self.axes([AxisRef(axis)], mesh) for axis in mesh]
        return all(axes is not None and all(axis.is_full for axis in axes) for axes in made_of)

    def sharding(self, sharding: TensorSharding, mesh: Mesh, name: str | Mesh) -> TensorSharding | None:
        """The same layout as `sharding`, which is on `mesh`, on the common mesh, called `name`; None where none is."""
        dims = [self.axes(axes, mesh) for axes in sharding.dim_axes]
        replicated, unreduced = self.axes(sharding.replicated, mesh), self.axes(sharding.unreduced, mesh)
        if replicated is None or unreduced is None or None in dims:
            return None
        in_order = mesh_order(self.mesh)
        return replace(
            sharding,
            mesh=name,
            dims=tuple(_split_over(dim, axes or ()) for dim, axes in zip(sharding.dims, dims, strict=True)),
            replicated=merge_sub_axes(sorted(replicated, key=in_order), self.mesh),
            unreduced=merge_sub_axes(sorted(unreduced, key=in_order), self.mesh),
        )

    def loosened(self, sharding: TensorSharding, mesh: Mesh, name: str | Mesh) -> TensorSharding | None:
        """As `sharding`, with the dimensions that cannot be split so open instead; None where that is not enough.

        It is not for a mesh whose axes are nowhere on the line, nor for partial results that are still to be combined.
        """

        def open_unless_common(dim: DimSharding) -> DimSharding:
            return dim if self.axes(dim.axes, mesh) is not None else DimSharding(is_closed=False)

        if mesh not in self._places:
            return None
        return self.sharding(replace(sharding.map_dims(open_unless_common), replicated=()), mesh, name)

    def axes(self, axes: Iterable[AxisRef], mesh: Mesh) -> tuple[AxisRef, ...] | None:
        """The axes that cut the devices as `axes` of `mesh` do, major to minor; None where there are none."""
        if mesh not in self._places:
            return None
        intervals = _joined(part for axis in axes for part in _parts(axis, self._places[mesh][axis.name]))
        found = [self._between(*interval) for interval in intervals]
        return None if None in found else tuple(axis for axes in found for axis in axes or ())

    def _between(self, low: int, high: int) -> list[AxisRef] | None:
        axes: list[AxisRef] = []
        for name, (start, end) in self._cuts.items():
            first, last = max(low, start), min(high, end)
            if first < last:
                if first % start or last % first or end % last:
                    return None
                axes.append(axis_between(name, first // start, last // start, self.mesh))
        return axes


def _split_over(dim: DimSharding, axes: tuple[AxisRef, ...]) -> DimSharding:
    return replace(dim, axes=axes).without_idle_priority()


def _named(cuts: Sequence[Interval], places: Mapping[str, Intervals]) -> dict[str, Interval]:
    """`cuts` by name, in the order of the line, as the mesh with these `places` would call them."""
    names: dict[Interval, str] = {}
    for axis, intervals in places.items():
        parts = [cut for start, end in intervals for cut in cuts if start <= cut[0] < cut[1] <= end]
        before = 1
        for start, end in parts:
            names[start, end] = axis if len(parts) == 1 else f"{axis}:({before}){end // start}"
            before *= end // start
    return {names[cut]: cut for cut in cuts}


def _joined(intervals: Iterable[Interval]) -> list[Interval]:
    """`intervals` with those that continue each other made one."""
    joined: list[Interval] = []
    for start, end in intervals:
        if joined and joined[-1][1] == start:
            joined[-1] = joined[-1][0], end
        else:
            joined.append((start, end))
    return joined


def _parts(axis: AxisRef, intervals: Intervals) -> Iterator[Interval]:
    """The parts of `intervals`, those of the whole axis, that `axis` is made of."""
    start = 1
    for low, high in intervals:
        end = start * (high // low)
        first, last = max(start, axis.start), end if axis.size is None else min(end, axis.start * axis.size)
        if first < last:
            yield low * first // start, low * last // start
        start = end


def _places(meshes: Iterable[Mesh], order: Sequence[int]) -> dict[Mesh, Mapping[str, Intervals]]:
    """The intervals of the axes of those of `meshes` that have any on the line of devices in this order."""
    return {mesh: found for mesh in meshes if (found := _intervals(mesh, order))}


def _intervals(mesh: Mesh, order: Sequence[int]) -> dict[str, Intervals]:
    """The intervals of each axis of `mesh`, major to minor, on the line of devices in this order; {} where none are."""
    if mesh.size != len(order):
        return {}
    position = np.empty(mesh.size, np.int64)
    position[list(order)] = np.arange(mesh.size)
    grid = position[list(mesh.device_order())].reshape([size for _, size in mesh.axes])
    lines = [grid[tuple(slice(None) if dim == each else 0 for each in range(grid.ndim))] for dim in range(grid.ndim)]
    # Each position must be the sum of one along each axis.
    if not np.array_equal(grid, sum(np.ix_(*lines), start=np.zeros((), np.int64))):
        return {}
    found = [_intervals_of_line(line, mesh.size) for line in lines]
    return {} if None in found else {name: tuple(of_axis or ()) for name, of_axis in zip(mesh, found, strict=True)}


def _intervals_of_line(line: Ints, size: int) -> list[Interval] | None:
    """The intervals, major to minor, whose positions are those on `line`, of a line of `size` positions."""
    intervals: list[Interval] = []
    whole = line
    while len(line) > 1:
        stride = int(line[1])
        counts = [count for count in range(2, len(line) + 1) if len(line) % count == 0]
        even = [count for count in counts if np.array_equal(line[:count], np.arange(count) * stride)]
        if line[0] or not even or size % (stride * even[-1]):
            return None
        intervals.insert(0, (size // (stride * even[-1]), size // stride))
        line = line[:: even[-1]]
    # Of the line, what is not at the start of a run has not been looked at.
    steps = [np.arange(end // start) * (size // end) for start, end in intervals]
    made = sum(np.ix_(*steps), start=np.zeros((), np.int64)).ravel()
    return intervals if np.array_equal(made, whole) else None
