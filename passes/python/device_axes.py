"""The mesh of a printed program: its axes, cut where a sharding or a collective uses a part of an axis.

Positions are those of `sdy.axes`, on a line from 1 (major) to the number of devices (minor). With a tensor sharded
along `"x":(1)2` of `<["x"=8]>`, the axes are `x_0` of size 2 and `x_1` of size 4.
"""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sdy.axes import AxisRef
from sdy.mesh import Mesh
from sdy.passes.python.expressions import Expression, call, sizes, tuple_of


@dataclass(frozen=True)
class DeviceAxes:
    """The axes of the devices, major to minor, and their sizes.

    Attributes:
        mesh: The mesh of the program.
        bounds: The start and end of each axis on the line of positions.
        names: The name of each axis.
    """

    mesh: Mesh
    bounds: tuple[tuple[int, int], ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, mesh: Mesh, cuts: Iterable[int]) -> "DeviceAxes":
        """Cut the axes of `mesh` at the positions `cuts`.

        Raises:
            NotImplementedError: The positions do not divide each other.
        """
        bounds: list[tuple[int, int]] = []
        names: list[str] = []
        start, places = 1, {*cuts}
        for name, size in mesh.axes:
            end = start * size
            ends = [start, *sorted(place for place in places if start < place < end), end]
            parts = [*pairwise(ends)] or [(start, end)]
            if any(high % low for low, high in parts):
                raise NotImplementedError(f"they use parts of axis {name} that have no common sub-axes")
            bounds += parts
            names += [name] if len(parts) == 1 else [f"{name}_{part}" for part in range(len(parts))]
            start = end
        return cls(mesh, tuple(bounds), tuple(names))

    @property
    def sizes(self) -> tuple[int, ...]:
        """The size of each axis."""
        return tuple(end // start for start, end in self.bounds)

    def of_sharding(self, axes: Sequence[AxisRef], mesh: Mesh) -> list[str]:
        """Return the names of `axes` of `mesh`."""
        return [name for axis in axes for name in self._between(*interval(axis, mesh))]

    def of_groups(self, groups: Sequence[Sequence[int]]) -> list[str]:
        """Return the axes along which the devices of each group differ.

        Raises:
            NotImplementedError: The groups are not those along axes.
        """
        names = [name for start, end in intervals_of(groups[0], self.mesh.size) for name in self._between(start, end)]
        if [*map(list, groups)] != self._groups(names) and [*map(list, groups)] != sorted(self._groups(names)):
            raise NotImplementedError(f"the groups {groups} are not those along axes of the mesh")
        return names

    def _between(self, start: int, end: int) -> list[str]:
        within = zip(self.names, self.bounds, strict=True)
        return [name for name, (low, high) in within if start <= low < high <= end]

    def _groups(self, names: Sequence[str]) -> list[list[int]]:
        positions = np.arange(math.prod(self.sizes)).reshape(self.sizes)
        along = [self.names.index(name) for name in names]
        others = [dim for dim in range(len(self.names)) if dim not in along]
        return positions.transpose(*others, *along).reshape(-1, math.prod(self.sizes[dim] for dim in along)).tolist()

    def text(self) -> Expression:
        """Return the expression that makes the mesh."""
        names, devices = tuple_of(map(string, self.names)), math.prod(self.sizes)
        types = Expression(f"(jax.sharding.AxisType.Auto,) * {len(self.names)}")
        if not self.mesh.device_ids:
            return call("jax.make_mesh", sizes(self.sizes), names, axis_types=types)
        order = call("np.array", f"[jax.devices()[i] for i in {[*self.mesh.device_ids]}]")
        assert devices == len(self.mesh.device_ids)
        return call("jax.sharding.Mesh", f"{order}.reshape{sizes(self.sizes)}", names, axis_types=types)


def string(text: str) -> str:
    """Return a Python string literal with double quotes."""
    return json.dumps(text)


def axes_text(names: Sequence[str]) -> str:
    """Return the axes as an argument of a collective: a name, or a tuple of names."""
    return string(names[0]) if len(names) == 1 else tuple_of(map(string, names)).text


def interval(axis: AxisRef, mesh: Mesh) -> tuple[int, int]:
    """Return the start and the end of an axis on the line of positions."""
    major = math.prod(size for _, size in mesh.axes[: mesh.axis_index(axis.name)])
    return major * axis.start, major * axis.end_in(mesh)


def intervals_of(group: Sequence[int], count: int) -> list[tuple[int, int]]:
    """Return the intervals of positions along which the devices of `group` differ, in the order of the group.

    Raises:
        NotImplementedError: There are none.
    """
    offsets = [device - group[0] for device in group]
    found: list[tuple[int, int]] = []
    while len(offsets) > 1:
        stride, size = offsets[1], 1
        while size < len(offsets) and offsets[size] == size * stride:
            size += 1
        if stride <= 0 or len(offsets) % size or count % (stride * size):
            raise NotImplementedError(f"the devices {[*group]} are not those along axes of the mesh")
        found.insert(0, (count // (stride * size), count // stride))
        offsets = offsets[::size]
    return found
