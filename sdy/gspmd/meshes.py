"""Conversion of GSPMD shardings to SDY shardings, whose axes have names, and back.

A tile assignment is a sharding on a mesh of its own, whose axes are its dimensions: `[2,1,4]<=[8]` is a sharding on
`<["0"=2, "2"=4]>`. The shardings of a program thus have meshes over the same devices, which are merged into their
common refinement.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

import numpy as np

from sdy.axes import AxisRef, subtract, total_size
from sdy.common_mesh import CommonMesh
from sdy.device_groups import grid_positions
from sdy.gspmd.hlo_sharding import HloSharding, Subgroup
from sdy.gspmd.tile_assignment import TileAssignment
from sdy.mesh import Mesh
from sdy.sharding import DimSharding, TensorSharding


@dataclass(frozen=True)
class RecoveredMeshes:
    """Meshes recovered from GSPMD shardings; the first one is the mesh of all devices.

    Attributes:
        meshes: The meshes.
        _common: The refinement to which each sharding's own mesh is converted.
    """

    meshes: tuple[Mesh, ...]
    _common: dict[Mesh, CommonMesh]

    @classmethod
    def of(
        cls, shardings: Iterable[HloSharding], given: Sequence[Mesh] = (), device_count: int = 1
    ) -> "RecoveredMeshes":
        """Recover one mesh for all `shardings` if possible, else as few as possible.

        Args:
            shardings: The shardings of a program.
            given: Known meshes, which are tried first; shardings may use sub-axes of them.
            device_count: The size of the mesh, with a single axis, if no sharding is tiled.

        Returns:
            The known meshes, then the recovered ones with axes `axis_0`, `axis_1` and so on.
        """
        tiled = [(_own_mesh(each.tiles), each.is_manual) for each in shardings if each.tiles is not None]
        own = dict.fromkeys(mesh for mesh, _ in tiled)
        # Manual axes must be full axes.
        manual = {mesh for mesh, is_manual in tiled if is_manual}
        common: dict[Mesh, CommonMesh] = {}
        meshes = [*given]
        for mesh in given:
            same_size = [each for each in own if each.size == mesh.size and each not in common]
            over = CommonMesh.over(mesh, same_size)
            common |= {each: over for each in same_size if each in over or (each not in manual and _fits(each, over))}
        while remaining := [mesh for mesh in own if mesh not in common]:
            over = _common_mesh(remaining)
            meshes.append(over.mesh)
            common |= {mesh: over for mesh in remaining if mesh in over}
        if not meshes:
            meshes.append(Mesh.of({"axis_0": device_count} if device_count > 1 else {}))
        return cls(tuple(meshes), common)

    def mesh_of(self, sharding: HloSharding) -> Mesh:
        """Return the mesh to which `sharding` is converted."""
        if sharding.device is not None:
            return Mesh((), (sharding.device,))
        return self.meshes[0] if sharding.tiles is None else self._common[_own_mesh(sharding.tiles)].mesh

    def tensor_sharding(
        self, sharding: HloSharding, rank: int, open_dims: AbstractSet[int] = frozenset()
    ) -> TensorSharding:
        """Convert `sharding` to an SDY sharding with an inlined mesh; manual subgroups are dropped.

        Args:
            sharding: The sharding to convert.
            rank: The rank of the tensor.
            open_dims: The dimensions that become open.

        Raises:
            ValueError: The number of tile dimensions differs from the rank.
        """
        mesh = self.mesh_of(sharding)
        if sharding.device is not None:
            return TensorSharding(mesh)
        dims = tuple(DimSharding(is_closed=index not in open_dims) for index in range(rank))
        if sharding.tiles is None:
            unreduced = tuple(map(AxisRef, mesh)) if sharding.kind == "unreduced" else ()
            return TensorSharding(mesh, dims, unreduced=unreduced)
        if len(sharding.tile_shape) != rank:
            raise ValueError(f"tiles have {len(sharding.tile_shape)} dimensions, but the tensor has {rank}")
        split = tuple(replace(dim, axes=_axes_of(sharding.tiles, index)) for index, dim in enumerate(dims))
        own = _own_mesh(sharding.tiles)
        on_own = TensorSharding(own, split, unreduced=_axes_of_subgroup(sharding, "unreduced"))
        converted = self._common[own].sharding(on_own, own, mesh)
        assert converted is not None
        return converted

    def manual_axes(self, sharding: HloSharding) -> tuple[AxisRef, ...]:
        """Return the axes along which `sharding` is manual, in the order of its devices."""
        if sharding.tiles is None:
            return tuple(map(AxisRef, self.mesh_of(sharding))) if sharding.kind == "manual" else ()
        own = _own_mesh(sharding.tiles)
        return self._common[own].axes(_axes_of_subgroup(sharding, "manual"), own) or ()


def hlo_sharding_of(sharding: TensorSharding, mesh: Mesh, manual_axes: Sequence[str] = ()) -> HloSharding:
    """Convert `sharding` on `mesh`, inside a computation with these manual axes, to a GSPMD sharding."""
    if mesh.is_maximal:
        return HloSharding("maximal", mesh.device_ids[0])
    split = [axis for axes in sharding.dim_axes for axis in axes]
    groups: dict[Subgroup, Sequence[AxisRef]] = {
        "manual": subtract([AxisRef(axis) for axis in mesh if axis in manual_axes], split, mesh),
        "unreduced": sharding.unreduced,
    }
    named = [*split, *(axis for axes in groups.values() for axis in axes)]
    groups["replicated"] = subtract(map(AxisRef, mesh), named, mesh)
    subgroups: tuple[Subgroup, ...] = tuple(name for name, axes in groups.items() if total_size(axes, mesh) > 1)
    sizes = [total_size(axes, mesh) for axes in (*sharding.dim_axes, *(groups[name] for name in subgroups))]
    devices = tuple(np.argsort(grid_positions(named, mesh)).tolist())
    return HloSharding.tiled(TileAssignment(tuple(sizes), devices), subgroups)


def _common_mesh(meshes: Sequence[Mesh]) -> CommonMesh:
    """Return the common refinement of the first of `meshes` and the compatible ones, preferably in device order."""
    line = Mesh.of({"line": meshes[0].size})
    same_size = [mesh for mesh in meshes if mesh.size == line.size]
    in_order = [mesh for mesh in same_size if mesh in CommonMesh.of([line, mesh])]
    compatible = in_order or same_size
    if not in_order:
        line = replace(line, device_ids=compatible[0].device_order())
    refinement = CommonMesh.of([line, *compatible]).mesh
    axes = tuple((f"axis_{index}", size) for index, (_, size) in enumerate(refinement.axes))
    return CommonMesh.over(Mesh(axes, refinement.device_ids), compatible)


def _fits(mesh: Mesh, common: CommonMesh) -> bool:
    """Return whether every axis of `mesh` is a product of axes or sub-axes of the common mesh."""
    return all(common.axes([AxisRef(axis)], mesh) is not None for axis in mesh)


def _own_mesh(tiles: TileAssignment) -> Mesh:
    """Return the mesh whose axes are the dimensions of `tiles`, named by their index."""
    return Mesh(tuple((str(index), size) for index, size in enumerate(tiles.shape) if size > 1), tiles.devices)


def _axes_of(tiles: TileAssignment, index: int) -> tuple[AxisRef, ...]:
    return (AxisRef(str(index)),) if tiles.shape[index] > 1 else ()


def _axes_of_subgroup(sharding: HloSharding, subgroup: Subgroup) -> tuple[AxisRef, ...]:
    assert sharding.tiles is not None
    first = len(sharding.tile_shape)
    return tuple(
        axis
        for index, name in enumerate(sharding.subgroups, first)
        if name == subgroup
        for axis in _axes_of(sharding.tiles, index)
    )
