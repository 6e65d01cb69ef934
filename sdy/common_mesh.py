"""Common refinement of several meshes over the same devices.

The devices are ordered on a line of positions, measured as in `sdy.axes` from 1 (major) to their number (minor). With
eight devices, the axes of `<["x"=4, "y"=2]>` are the intervals from 1 to 4 and from 4 to 8, and the axis of `<["a"=8]>`
is the interval from 1 to 8. If a mesh lists the devices in another order, an axis may be several intervals, or
intervals out of order; for some orders it is none. The common mesh has an axis for each interval between consecutive
end points: here "x" and "y", whose product is "a".
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
"""Start and end of an interval of the device line."""

Intervals: TypeAlias = tuple[Interval, ...]


@dataclass(frozen=True)
class CommonMesh:
    """Common refinement of several meshes, and translation of shardings onto it.

    Attributes:
        mesh: The refinement.
        _axis_intervals: The interval of each axis of `mesh`.
        _mesh_intervals: For each refined mesh, the intervals of its axes.
    """

    mesh: Mesh
    _axis_intervals: Mapping[str, Interval]
    _mesh_intervals: Mapping[Mesh, Mapping[str, Intervals]]

    @classmethod
    def of(cls, meshes: Sequence[Mesh]) -> "CommonMesh":
        """Return the common refinement of the first of `meshes` and of all later ones that are compatible.

        A mesh is incompatible if the end points of its intervals do not divide those of the meshes before it, as
        `<["x"=2, "y"=3]>` and `<["a"=3, "b"=2]>`; some of its shardings may still have an equivalent. The refinement is
        one of `meshes` if that one is fine enough. Otherwise its axes have the names of the first mesh, and names as
        `x:(1)2` for sub-axes.
        """
        order = next((mesh for mesh in meshes if not mesh.device_ids), meshes[0]).device_order()
        by_mesh = _intervals_by_mesh(meshes, order)
        ends: set[int] = {1, len(order)}
        compatible: list[Mesh] = []
        for mesh, intervals in by_mesh.items():
            refined_ends = ends.union(*(interval for of_axis in intervals.values() for interval in of_axis))
            if all(high % low == 0 for low, high in pairwise(sorted(refined_ends))):
                compatible.append(mesh)
                ends = refined_ends
        namings = [_named([*pairwise(sorted(ends))], by_mesh[mesh]) for mesh in compatible]
        named = [Mesh(tuple((name, end // start) for name, (start, end) in names.items()), order) for names in namings]
        return cls.over(next((mesh for mesh in named if mesh in by_mesh), named[0]), meshes)

    @classmethod
    def over(cls, mesh: Mesh, others: Iterable[Mesh]) -> "CommonMesh":
        """Use `mesh` as the common mesh for the shardings on `others` that have an equivalent on it."""
        order = mesh.device_order()
        by_mesh = _intervals_by_mesh((mesh, *others), order)
        return cls(mesh, {axis: interval for axis, of_axis in by_mesh[mesh].items() for interval in of_axis}, by_mesh)

    def __contains__(self, mesh: Mesh) -> bool:
        """Return whether every axis of `mesh` is a product of axes of the common mesh."""
        refined = [self.axes([AxisRef(axis)], mesh) for axis in mesh]
        return all(axes is not None and all(axis.is_full for axis in axes) for axes in refined)

    def sharding(self, sharding: TensorSharding, mesh: Mesh, name: str | Mesh) -> TensorSharding | None:
        """Translate `sharding`, on `mesh`, to the common mesh, called `name`; None if it has no equivalent there."""
        dims = [self.axes(axes, mesh) for axes in sharding.dim_axes]
        replicated, unreduced = self.axes(sharding.replicated, mesh), self.axes(sharding.unreduced, mesh)
        if replicated is None or unreduced is None or None in dims:
            return None
        order = mesh_order(self.mesh)
        return replace(
            sharding,
            mesh=name,
            dims=tuple(_split_over(dim, axes or ()) for dim, axes in zip(sharding.dims, dims, strict=True)),
            replicated=merge_sub_axes(sorted(replicated, key=order), self.mesh),
            unreduced=merge_sub_axes(sorted(unreduced, key=order), self.mesh),
        )

    def loosened(self, sharding: TensorSharding, mesh: Mesh, name: str | Mesh) -> TensorSharding | None:
        """Translate `sharding` to the common mesh, with an open dimension for each whose axes have no equivalent.

        Returns:
            None if `mesh` has no intervals on the device line, or if unreduced axes have no equivalent.
        """

        def open_unless_common(dim: DimSharding) -> DimSharding:
            return dim if self.axes(dim.axes, mesh) is not None else DimSharding(is_closed=False)

        if mesh not in self._mesh_intervals:
            return None
        return self.sharding(replace(sharding.map_dims(open_unless_common), replicated=()), mesh, name)

    def axes(self, axes: Iterable[AxisRef], mesh: Mesh) -> tuple[AxisRef, ...] | None:
        """Return the axes of the common mesh that split the devices as `axes` of `mesh` do; None if there are none."""
        if mesh not in self._mesh_intervals:
            return None
        intervals = _joined(
            part for axis in axes for part in _sub_intervals(axis, self._mesh_intervals[mesh][axis.name])
        )
        refined = [self._between(*interval) for interval in intervals]
        return None if None in refined else tuple(axis for axes in refined for axis in axes or ())

    def _between(self, low: int, high: int) -> list[AxisRef] | None:
        """Return the axes of the common mesh that cover the interval from `low` to `high`; None if they cannot."""
        axes: list[AxisRef] = []
        for name, (start, end) in self._axis_intervals.items():
            first, last = max(low, start), min(high, end)
            if first < last:
                if first % start or last % first or end % last:
                    return None
                axes.append(axis_between(name, first // start, last // start, self.mesh))
        return axes


def _split_over(dim: DimSharding, axes: tuple[AxisRef, ...]) -> DimSharding:
    return replace(dim, axes=axes).without_idle_priority()


def _named(segments: Sequence[Interval], by_axis: Mapping[str, Intervals]) -> dict[str, Interval]:
    """Name the intervals `segments`, in line order, after the axes that contain them."""
    names: dict[Interval, str] = {}
    for axis, intervals in by_axis.items():
        parts = [segment for low, high in intervals for segment in segments if low <= segment[0] < segment[1] <= high]
        before = 1
        for start, end in parts:
            names[start, end] = axis if len(parts) == 1 else f"{axis}:({before}){end // start}"
            before *= end // start
    return {names[segment]: segment for segment in segments}


def _joined(intervals: Iterable[Interval]) -> list[Interval]:
    """Merge consecutive intervals that are contiguous."""
    joined: list[Interval] = []
    for start, end in intervals:
        if joined and joined[-1][1] == start:
            joined[-1] = joined[-1][0], end
        else:
            joined.append((start, end))
    return joined


def _sub_intervals(axis: AxisRef, intervals: Intervals) -> Iterator[Interval]:
    """Yield the sub-intervals of `intervals`, those of the full axis, that `axis` covers."""
    start = 1
    for low, high in intervals:
        end = start * (high // low)
        first, last = max(start, axis.start), end if axis.size is None else min(end, axis.start * axis.size)
        if first < last:
            yield low * first // start, low * last // start
        start = end


def _intervals_by_mesh(meshes: Iterable[Mesh], order: Sequence[int]) -> dict[Mesh, Mapping[str, Intervals]]:
    """Return the intervals of the axes of each of `meshes`, without meshes that have none for this device order."""
    return {mesh: intervals for mesh in meshes if (intervals := _intervals(mesh, order))}


def _intervals(mesh: Mesh, order: Sequence[int]) -> dict[str, Intervals]:
    """Return the intervals of each axis of `mesh`, major to minor, for this device order; empty if it has none."""
    if mesh.size != len(order):
        return {}
    position = np.empty(mesh.size, np.int64)
    position[list(order)] = np.arange(mesh.size)
    grid = position[list(mesh.device_order())].reshape([size for _, size in mesh.axes])
    lines = [grid[tuple(slice(None) if dim == each else 0 for each in range(grid.ndim))] for dim in range(grid.ndim)]
    # Each position must be a sum of one position along each axis.
    if not np.array_equal(grid, sum(np.ix_(*lines), start=np.zeros((), np.int64))):
        return {}
    by_axis = [_intervals_of_line(line, mesh.size) for line in lines]
    return {} if None in by_axis else {name: tuple(of_axis or ()) for name, of_axis in zip(mesh, by_axis, strict=True)}


def _intervals_of_line(line: Ints, size: int) -> list[Interval] | None:
    """Decompose `line`, the positions along one axis, into intervals of a line of `size`, major to minor."""
    intervals: list[Interval] = []
    positions = line
    while len(line) > 1:
        stride = int(line[1])
        counts = [count for count in range(2, len(line) + 1) if len(line) % count == 0]
        even = [count for count in counts if np.array_equal(line[:count], np.arange(count) * stride)]
        if line[0] or not even or size % (stride * even[-1]):
            return None
        intervals.insert(0, (size // (stride * even[-1]), size // stride))
        line = line[:: even[-1]]
    # Only the starts of runs have been checked so far: compare all positions.
    steps = [np.arange(end // start) * (size // end) for start, end in intervals]
    sums = sum(np.ix_(*steps), start=np.zeros((), np.int64)).ravel()
    return intervals if np.array_equal(sums, positions) else None
