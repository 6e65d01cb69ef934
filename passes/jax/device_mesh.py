"""The devices of a program as one jax mesh that can express every sharding of the program.

A jax sharding names full axes of a mesh; an sdy sharding may name sub-axes, and a module may declare several meshes
over the same devices. The jax mesh therefore has one axis for each interval between consecutive bounds of axes and
sub-axes: the devices of `<["x"=8]>`, with a tensor sharded along `"x":(1)2`, become a jax mesh with the axes `x:(1)2`
and `x:(2)4`. Positions are those of `sdy.axes`, on a line from 1 (major) to the number of devices (minor). The
shardings that users see are on a mesh of the module if full axes of it express them.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from typing import TypeAlias
from urllib.parse import quote

import jax
import numpy as np
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from sdy.axes import AxisRef, axis_between
from sdy.common_mesh import CommonMesh
from sdy.diagnostics import Where, error
from sdy.dialect.meshes import mesh_of, named_meshes
from sdy.dialect.ops import MeshOp
from sdy.dialect.shardings import get_sharding
from sdy.ir.shapes import rank
from sdy.mesh import Mesh
from sdy.passes.driver import run_passes
from sdy.sharding import DimSharding, TensorSharding

_PLAIN = " !#$%&'()*+,/:;<=>?@[]^`{|}"
"""The characters besides letters and digits that XLA accepts in axis names; any other aborts the process."""

Device: TypeAlias = jax.Device
"""A jax device."""

AnyMesh: TypeAlias = jax.sharding.Mesh | AbstractMesh
"""A concrete or abstract jax mesh."""


@dataclass(frozen=True, slots=True)
class PlacedSharding:
    """A sharding and its mesh."""

    sharding: TensorSharding
    mesh: Mesh


@dataclass(frozen=True, slots=True)
class _AxisInterval:
    """An axis of the jax mesh and the interval of positions that it covers."""

    name: str
    start: int
    end: int


@dataclass(frozen=True)
class DeviceMesh:
    """A jax mesh, the position intervals of its axes, and the jax form of each mesh of the module."""

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
        """Create the jax mesh that can express `shardings`.

        The axes have the types of those of `like` if names and sizes are equal; otherwise they are Explicit if a
        sharding has unreduced axes, else Auto.

        Args:
            devices: The devices, ordered by device id; None for an abstract mesh.
            meshes: All meshes of the module, at least one.
            shardings: The shardings to express.
            where: The location of errors.
            like: The mesh of the tracing context, if any.

        Raises:
            DiagnosticError: two meshes have different devices, or two shardings have a different device order, or axes
                without common sub-axes.
        """
        first = meshes[0]
        if any(mesh.size != first.size for mesh in meshes):
            raise error(where, "running a program whose meshes have different devices is not supported")
        if not all(first.same_devices(placed.mesh) for placed in shardings if placed.mesh.axes):
            raise error(where, "passing arrays on meshes with different device orders is not supported")
        ends = {end for axis in first for end in _interval(AxisRef(axis), first)} | {1, first.size}
        for placed in shardings:
            ends.update(end for axis in placed.sharding.axes() for end in _interval(axis, placed.mesh))
        for low, high in pairwise(sorted(ends)):
            if high % low:
                raise error(where, f"the axes of the meshes have no common sub-axes: {high} is not a multiple of {low}")
        intervals = tuple(_intervals(first, ends))
        axes = {each.name: each.end // each.start for each in intervals}
        if like is not None and (like.axis_names, like.axis_sizes) == (tuple(axes), tuple(axes.values())):
            types = like.axis_types
        elif any(placed.sharding.unreduced for placed in shardings):
            types = (AxisType.Explicit,) * len(intervals)  # jax supports unreduced values on Explicit axes only
        else:
            types = None
        of_module = {mesh: _in_jax(mesh.axes, mesh, devices) for mesh in meshes} if len(meshes) > 1 else {}
        return cls(_in_jax([*axes.items()], first, devices, types), intervals, of_module)

    def named_sharding(self, placed: PlacedSharding | None) -> NamedSharding:
        """Convert a sharding for users: on the module's mesh that expresses it with the fewest full axes.

        If no mesh of the module expresses it with full axes, the result is on `mesh`. None is replicated.
        """
        if placed is not None and self._of_module and not placed.sharding.unreduced:
            candidates = [
                (mesh, self._of_module[mesh], sharding)
                for mesh in self._of_module
                if (sharding := CommonMesh.over(mesh, [placed.mesh]).sharding(placed.sharding, placed.mesh, mesh))
                and all(axis.is_full for axis in sharding.axes())
            ]
            if candidates:
                _, mesh, sharding = min(candidates, key=lambda candidate: sum(map(len, candidate[2].dim_axes)))
                return NamedSharding(
                    mesh, _spec([quote(axis.name, _PLAIN) for axis in axes] for axes in sharding.dim_axes)
                )
        return NamedSharding(self.mesh, self.spec(placed))

    def spec(self, placed: PlacedSharding | None) -> PartitionSpec:
        """Convert a sharding to a partition spec on `mesh`; None is replicated."""
        if placed is None:
            return PartitionSpec()
        dims = (self._names(axes, placed.mesh) for axes in placed.sharding.dim_axes)
        return _spec(dims, self.unreduced_axes(placed))

    def unreduced_axes(self, placed: PlacedSharding) -> Iterator[str]:
        """Yield the axes of `mesh` along which the value is unreduced."""
        return self._names(placed.sharding.unreduced, placed.mesh)

    def _names(self, axes: Iterable[AxisRef], mesh: Mesh) -> Iterator[str]:
        for axis in axes:
            start, end = _interval(axis, mesh)
            yield from (quote(each.name, _PLAIN) for each in self._intervals if start <= each.start < each.end <= end)


def refuse_abstract(name: str, mesh: AnyMesh | None) -> None:
    """Raise ValueError if `mesh`, the mesh of the function `name`, is abstract and so cannot run a program."""
    if isinstance(mesh, AbstractMesh):
        axes = ", ".join(f"{axis}={size}" for axis, size in mesh.shape.items())
        raise ValueError(
            f"sdy.jit({name}) is for an abstract mesh of {mesh.size} devices ({axes}); jax has {jax.device_count()}. "
            "It can be lowered; to compile and run it, pass a jax.sharding.Mesh, which has devices"
        )


def _spec(names_of_dims: Iterable[Iterable[str]], unreduced: Iterable[str] = ()) -> PartitionSpec:
    return PartitionSpec(*(tuple(names) or None for names in names_of_dims), unreduced=frozenset(unreduced))


def _in_jax(
    axes: Sequence[tuple[str, int]],
    mesh: Mesh,
    devices: Sequence[Device] | None,
    types: tuple[AxisType, ...] | None = None,
) -> AnyMesh:
    """Return the jax mesh with `axes` and the device order of `mesh`; an abstract mesh without `devices`."""
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


def name_mesh(module: ModuleOp, mesh: AnyMesh) -> None:
    """Declare `mesh` in `module` unless it declares a mesh with axes.

    A module has no mesh if nothing in it is sharded, or if jax lowered it for GSPMD (`jax_use_shardy_partitioner` off).
    The GSPMD shardings of the latter are imported onto `mesh`.
    """
    if not any(named.axes for named in named_meshes(module).values()):
        Rewriter.insert_op(MeshOp("mesh", Mesh.of(mesh)), InsertPoint.at_start(module.body.block))
        # Imported here because nearly all programs declare a mesh and do not need it.
        from sdy.passes.importing.import_gspmd import ImportGspmdPass, has_gspmd_shardings

        if has_gspmd_shardings(module):
            run_passes(module, [ImportGspmdPass()])


def mesh_name(module: ModuleOp, mesh: AnyMesh, devices: Sequence[Device]) -> str | None:
    """Return the name of the mesh of `module` with the axes and the device order of `mesh`; None without one.

    An abstract mesh has no device order, and is the first mesh with its axes.
    """
    for name, own in named_meshes(module).items():
        if own.axes != tuple(mesh.shape.items()):
            continue
        if isinstance(mesh, AbstractMesh) or [*mesh.devices.flat] == [devices[index] for index in own.device_order()]:
            return name
    return None


def placed_values(module: ModuleOp, values: Sequence[SSAValue], devices: Sequence[Device]) -> list[NamedSharding]:
    """Return the shardings of `values` in `module`, a program for `devices`, with one spec entry per dimension.

    jax cannot express sub-axes: a dimension is reported as sharded along the full axes before its first sub-axis.
    Raises DiagnosticError if no jax mesh expresses the meshes of `module`.
    """
    meshes = [mesh for mesh in named_meshes(module).values() if mesh.axes]
    grid = DeviceMesh.over(devices, meshes, (), module)
    return [_of_rank(grid.named_sharding(_placed(get_sharding(value), module)), rank(value.type)) for value in values]


def _of_rank(sharding: NamedSharding, rank: int) -> NamedSharding:
    return NamedSharding(sharding.mesh, PartitionSpec(*sharding.spec, *[None] * (rank - len(sharding.spec))))


def _placed(sharding: TensorSharding | None, module: ModuleOp) -> PlacedSharding | None:
    if sharding is None or (mesh := mesh_of(sharding, module)).is_maximal:
        return None
    dims = [DimSharding(tuple(takewhile(lambda axis: axis.is_full, axes))) for axes in sharding.dim_axes]
    return PlacedSharding(replace(sharding, dims=tuple(dims)), mesh)
