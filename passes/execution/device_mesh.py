"""The devices of a program as one jax mesh, on which every sharding of the program can be said.

A jax sharding names whole axes of a mesh; ours may name sub-axes, and a module may see the same devices through
several meshes. So the first mesh is cut wherever an axis or a sub-axis begins or ends: the devices of `<["x"=8]>`, on
which some tensor is split along `"x":(1)2`, become a jax mesh with the axes `x:(1)2` and `x:(2)4`. Positions are
measured as in `sdy.axes`, on a line from 1 (major) to the number of devices (minor).
"""

# jax does not declare all of its types.
# pyright: basic

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias
from urllib.parse import quote

import jax
import numpy as np
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

from sdy.axes import AxisRef, axis_between
from sdy.diagnostics import Where, error
from sdy.mesh import Mesh
from sdy.sharding import TensorSharding

_PLAIN = " !#$&'()*+,/:;<=>?@[]^`{|}"
"""Of what may be in an axis name besides letters and digits, what XLA takes: at anything else it ends the process."""

Device: TypeAlias = Any
"""A `jax.Device`, which jax declares as a variable, not as a type."""


@dataclass(frozen=True, slots=True)
class PlacedSharding:
    """A sharding and the mesh that it is on."""

    sharding: TensorSharding
    mesh: Mesh


@dataclass(frozen=True, slots=True)
class _Cut:
    """One axis of the jax mesh and the interval of positions that it covers."""

    name: str
    start: int
    end: int


@dataclass(frozen=True)
class DeviceMesh:
    """A jax mesh, and where its axes lie on the line of positions."""

    mesh: jax.sharding.Mesh
    _cuts: tuple[_Cut, ...]

    @classmethod
    def over(
        cls,
        devices: Sequence[Device],
        meshes: Sequence[Mesh],
        shardings: Iterable[PlacedSharding],
        where: Where,
        like: AbstractMesh | None = None,
    ) -> "DeviceMesh":
        """The jax mesh of `devices`, device `i` being the one that the meshes number `i`.

        `meshes` are all meshes of the module, one at least, and `shardings` those that the jax mesh is for. Its axes
        have the types of those of `like` if they are the same, otherwise jax is not told of any. Raises
        DiagnosticError where two meshes have other devices, another order of them, or axes that cannot be cut so
        that both are made of whole pieces.
        """
        first = meshes[0]
        for mesh in meshes[1:]:
            if not first.same_devices(mesh):
                raise error(
                    where, "a program whose meshes have different devices, or a different order, cannot be run yet"
                )
        ends = {1, first.size}
        for mesh in meshes:
            ends.update(end for axis in mesh for end in _interval(AxisRef(axis), mesh))
        for placed in shardings:
            ends.update(end for axis in placed.sharding.axes() for end in _interval(axis, placed.mesh))
        for low, high in pairwise(sorted(ends)):
            if high % low:
                raise error(
                    where, f"the axes of the meshes cannot be cut into common sub-axes: {high} is no multiple of {low}"
                )
        cuts = tuple(_cuts(first, ends))
        grid = np.array([devices[index] for index in first.device_order()], dtype=object)
        grid = grid.reshape([cut.end // cut.start for cut in cuts])
        names = tuple(cut.name for cut in cuts)
        types = (AxisType.Auto,) * len(names)
        if like is not None and (like.axis_names, like.axis_sizes) == (names, grid.shape):
            types = like.axis_types
        return cls(jax.sharding.Mesh(grid, names, axis_types=types), cuts)

    def named_sharding(self, placed: PlacedSharding | None) -> NamedSharding:
        """A sharding as jax says it; None is replicated."""
        if placed is None:
            return NamedSharding(self.mesh, PartitionSpec())
        dims = [tuple(self._names(axes, placed.mesh)) for axes in placed.sharding.dim_axes]
        unreduced = set(self._names(placed.sharding.unreduced, placed.mesh))
        return NamedSharding(self.mesh, PartitionSpec(*(names or None for names in dims), unreduced=unreduced))

    def _names(self, axes: Iterable[AxisRef], mesh: Mesh) -> Iterator[str]:
        for axis in axes:
            start, end = _interval(axis, mesh)
            yield from (cut.name for cut in self._cuts if start <= cut.start < cut.end <= end)


def _interval(axis: AxisRef, mesh: Mesh) -> tuple[int, int]:
    major = math.prod(size for _, size in mesh.axes[: mesh.axis_index(axis.name)])
    return major * axis.start, major * axis.end_in(mesh)


def _cuts(mesh: Mesh, ends: set[int]) -> Iterator[_Cut]:
    for axis in mesh:
        start, end = _interval(AxisRef(axis), mesh)
        places = [start, *sorted(place for place in ends if start < place < end), end]
        for low, high in pairwise(places):
            part = axis_between(axis, low // start, high // start, mesh)
            name = quote(axis, _PLAIN)
            yield _Cut(name if part.is_full else f"{name}:({part.pre_size}){part.size}", low, high)
