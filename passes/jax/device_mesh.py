"""The devices of a program as one jax mesh, on which every sharding of the program can be said.

A jax sharding names whole axes of a mesh; ours may name sub-axes, and a module may see the same devices through
several meshes. So the mesh is cut wherever an axis or a sub-axis begins or ends: the devices of `<["x"=8]>`, on which
some tensor is split along `"x":(1)2`, become a jax mesh with the axes `x:(1)2` and `x:(2)4`. Positions are measured as
in `sdy.axes`, on a line from 1 (major) to the number of devices (minor). To a person, an array lies on the mesh that
the module has for it, where that names whole axes.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias
from urllib.parse import quote

import jax
import numpy as np
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

from sdy.axes import AxisRef, axis_between
from sdy.common_mesh import CommonMesh
from sdy.diagnostics import Where, error
from sdy.mesh import Mesh
from sdy.sharding import TensorSharding

_PLAIN = " !#$&'()*+,/:;<=>?@[]^`{|}"
"""Of what may be in an axis name besides letters and digits, what XLA takes: at anything else it ends the process."""

Device: TypeAlias = jax.Device
"""One of the devices that jax has."""

AnyMesh: TypeAlias = jax.sharding.Mesh | AbstractMesh
"""A mesh of jax, with devices or without."""


@dataclass(frozen=True, slots=True)
class PlacedSharding:
    """A sharding and the mesh that it is on."""

    sharding: TensorSharding
    mesh: Mesh


@dataclass(frozen=True, slots=True)
class _AxisInterval:
    """One axis of the jax mesh and the interval of positions that it covers."""

    name: str
    start: int
    end: int


@dataclass(frozen=True)
class DeviceMesh:
    """A jax mesh, and where its axes lie on the line of positions; the meshes of the module, as jax has them."""

    mesh: AnyMesh
    _intervals: tuple[_AxisInterval, ...]
    _of_module: Mapping[Mesh, AnyMesh]

    @classmethod
    def over(
        cls,
        devices: Sequence[Device] | None,
        meshes: Sequence[Mesh],
        shardings: Sequence[PlacedSharding],
        where: Where,
        like: AbstractMesh | None = None,
    ) -> "DeviceMesh":
        """The jax mesh of `devices`, device `i` being the one that the meshes number `i`; an abstract one without them.

        `meshes` are all meshes of the module, one at least, and `shardings` those that the jax mesh is for. Its axes
        have the types of those of `like` if they are the same, otherwise they are Explicit if there are partial
        results, and Auto if not. Raises DiagnosticError where two meshes have other devices, and where two shardings
        are on another order of them, or over axes that cannot be cut so that both are made of whole pieces.
        """
        first = meshes[0]
        if any(mesh.size != first.size for mesh in meshes):
            raise error(where, "a program whose meshes have different devices cannot be run yet")
        if not all(first.same_devices(placed.mesh) for placed in shardings if placed.mesh.axes):
            raise error(where, "arrays on meshes that have their devices in a different order cannot be passed yet")
        ends = {end for axis in first for end in _interval(AxisRef(axis), first)} | {1, first.size}
        for placed in shardings:
            ends.update(end for axis in placed.sharding.axes() for end in _interval(axis, placed.mesh))
        for low, high in pairwise(sorted(ends)):
            if high % low:
                raise error(
                    where, f"the axes of the meshes cannot be cut into common sub-axes: {high} is no multiple of {low}"
                )
        intervals = tuple(_intervals(first, ends))
        axes = {each.name: each.end // each.start for each in intervals}
        if like is not None and (like.axis_names, like.axis_sizes) == (tuple(axes), tuple(axes.values())):
            types = like.axis_types
        elif any(placed.sharding.unreduced for placed in shardings):
            types = (AxisType.Explicit,) * len(intervals)  # jax has partial results along no others
        else:
            types = None
        of_module = {mesh: _in_jax(mesh.axes, mesh, devices) for mesh in meshes} if len(meshes) > 1 else {}
        return cls(_in_jax([*axes.items()], first, devices, types), intervals, of_module)

    def named_sharding(self, placed: PlacedSharding | None) -> NamedSharding:
        """A sharding as a person says it, on the mesh of the module that does so in the fewest axes.

        That is the mesh itself where no mesh of the module names whole axes of it. None is replicated.
        """
        if placed is not None and self._of_module and not placed.sharding.unreduced:
            ways = [
                (mesh, self._of_module[mesh], sharding)
                for mesh in self._of_module
                if (sharding := CommonMesh.over(mesh, [placed.mesh]).sharding(placed.sharding, placed.mesh, mesh))
                and all(axis.is_full for axis in sharding.axes())
            ]
            if ways:
                _, mesh, sharding = min(ways, key=lambda way: sum(map(len, way[2].dim_axes)))
                return NamedSharding(
                    mesh, _spec([quote(axis.name, _PLAIN) for axis in axes] for axes in sharding.dim_axes)
                )
        return NamedSharding(self.mesh, self.spec(placed))

    def spec(self, placed: PlacedSharding | None) -> PartitionSpec:
        """A sharding on the mesh; None is replicated."""
        if placed is None:
            return PartitionSpec()
        dims = (self._names(axes, placed.mesh) for axes in placed.sharding.dim_axes)
        return _spec(dims, self.unreduced_axes(placed))

    def unreduced_axes(self, placed: PlacedSharding) -> Iterator[str]:
        """The axes of the mesh along which the elements are partial results."""
        return self._names(placed.sharding.unreduced, placed.mesh)

    def _names(self, axes: Iterable[AxisRef], mesh: Mesh) -> Iterator[str]:
        for axis in axes:
            start, end = _interval(axis, mesh)
            yield from (quote(each.name, _PLAIN) for each in self._intervals if start <= each.start < each.end <= end)


def refuse_abstract(name: str, mesh: AnyMesh | None) -> None:
    """Raise ValueError where `mesh`, of the function of this name, is abstract, so that nothing can run on it."""
    if isinstance(mesh, AbstractMesh):
        axes = ", ".join(f"{axis}={size}" for axis, size in mesh.shape.items())
        raise ValueError(
            f"sdy.jit({name}) is for an abstract mesh of {mesh.size} devices ({axes}); here are {jax.device_count()}. "
            "It can be lowered; to compile and run it, give a jax.sharding.Mesh, which has devices"
        )


def _spec(names_of_dims: Iterable[Iterable[str]], unreduced: Iterable[str] = ()) -> PartitionSpec:
    return PartitionSpec(*(tuple(names) or None for names in names_of_dims), unreduced=frozenset(unreduced))


def _in_jax(
    axes: Sequence[tuple[str, int]],
    mesh: Mesh,
    devices: Sequence[Device] | None,
    types: tuple[AxisType, ...] | None = None,
) -> AnyMesh:
    """The mesh of jax that has these axes and the devices of `mesh`, or none where there are no `devices`."""
    names, sizes = tuple(quote(name, _PLAIN) for name, _ in axes), tuple(size for _, size in axes)
    types = types or (AxisType.Auto,) * len(names)
    if devices is None:
        return AbstractMesh(sizes, names, axis_types=types)
    grid = np.array([devices[index] for index in mesh.device_order()], dtype=object)
    return jax.sharding.Mesh(grid.reshape(sizes), names, axis_types=types)


def _interval(axis: AxisRef, mesh: Mesh) -> tuple[int, int]:
    major = math.prod(size for _, size in mesh.axes[: mesh.axis_index(axis.name)])
    return major * axis.start, major * axis.end_in(mesh)


def _intervals(mesh: Mesh, ends: set[int]) -> Iterator[_AxisInterval]:
    for axis in mesh:
        start, end = _interval(AxisRef(axis), mesh)
        places = [start, *sorted(place for place in ends if start < place < end), end]
        for low, high in pairwise(places):
            part = axis_between(axis, low // start, high // start, mesh)
            yield _AxisInterval(axis if part.is_full else f"{axis}:({part.pre_size}){part.size}", low, high)
