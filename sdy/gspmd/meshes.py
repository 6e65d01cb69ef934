"""From shardings of GSPMD to shardings of SDY, whose axes have names, and back.

A tile assignment is a sharding on a mesh of its own, whose axes are its dimensions: `[2,1,4]<=[8]` is one on
`<["0"=2, "2"=4]>`. All shardings of a program so have meshes over the same devices, which become one that is cut where
any of them is.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

import numpy as np

from sdy.axes import AxisRef, subtract, total_size
from sdy.common_mesh import CommonMesh
from sdy.device_groups import places
from sdy.gspmd.hlo_sharding import HloSharding, Subgroup
from sdy.gspmd.tile_assignment import TileAssignment
from sdy.mesh import Mesh
from sdy.sharding import DimSharding, TensorSharding


@dataclass(frozen=True)
class FoundMeshes:
    """The meshes that shardings of GSPMD are brought onto; of all devices that is the first one."""

    meshes: tuple[Mesh, ...]
    _common: dict[Mesh, CommonMesh]

    @classmethod
    def of(cls, shardings: Iterable[HloSharding], given: Sequence[Mesh] = (), device_count: int = 1) -> "FoundMeshes":
        """One mesh for all `shardings` if there is any, else as few as it takes.

        Those on the meshes that are `given` come first, as sub-axes where need be; axes that have to be found are
        called `axis_0` and so on. Where nothing is tiled, the mesh is one axis of `device_count` devices.
        """
        tiled = [(_own_mesh(each.tiles), each.is_manual) for each in shardings if each.tiles is not None]
        own = dict.fromkeys(mesh for mesh, _ in tiled)
        # What is manual is so along whole axes.
        whole = {mesh for mesh, is_manual in tiled if is_manual}
        common: dict[Mesh, CommonMesh] = {}
        meshes = [*given]
        for mesh in given:
            same_size = [each for each in own if each.size == mesh.size and each not in common]
            over = CommonMesh.over(mesh, same_size)
            common |= {each: over for each in same_size if each in over or (each not in whole and _fits(each, over))}
        while left := [mesh for mesh in own if mesh not in common]:
            over = _common_mesh(left)
            meshes.append(over.mesh)
            common |= {mesh: over for mesh in left if mesh in over}
        if not meshes:
            meshes.append(Mesh.of({"axis_0": device_count} if device_count > 1 else {}))
        return cls(tuple(meshes), common)

    def mesh_of(self, sharding: HloSharding) -> Mesh:
        """The mesh that `sharding` is brought onto."""
        if sharding.device is not None:
            return Mesh((), (sharding.device,))
        return self.meshes[0] if sharding.tiles is None else self._common[_own_mesh(sharding.tiles)].mesh

    def tensor_sharding(
        self, sharding: HloSharding, rank: int, open_dims: AbstractSet[int] = frozenset()
    ) -> TensorSharding:
        """The same layout of a tensor with `rank` dimensions; its mesh is the mesh itself.

        Of manual devices it says nothing. Raises ValueError where the tensor has not as many dimensions as tiles.
        """
        mesh = self.mesh_of(sharding)
        if sharding.device is not None:
            return TensorSharding(mesh)
        dims = tuple(DimSharding(is_closed=index not in open_dims) for index in range(rank))
        if sharding.tiles is None:
            unreduced = tuple(map(AxisRef, mesh)) if sharding.kind == "unreduced" else ()
            return TensorSharding(mesh, dims, unreduced=unreduced)
        if len(sharding.tile_shape) != rank:
            raise ValueError(f"tiles have {len(sharding.tile_shape)} dimensions, and the tensor has {rank}")
        split = tuple(replace(dim, axes=_axes_of(sharding.tiles, index)) for index, dim in enumerate(dims))
        own = _own_mesh(sharding.tiles)
        on_own = TensorSharding(own, split, unreduced=_axes_of_subgroup(sharding, "unreduced"))
        found = self._common[own].sharding(on_own, own, mesh)
        assert found is not None
        return found

    def manual_axes(self, sharding: HloSharding) -> tuple[AxisRef, ...]:
        """The axes along which `sharding` is the program's business, in the order of its devices."""
        if sharding.tiles is None:
            return tuple(map(AxisRef, self.mesh_of(sharding))) if sharding.kind == "manual" else ()
        own = _own_mesh(sharding.tiles)
        return self._common[own].axes(_axes_of_subgroup(sharding, "manual"), own) or ()


def hlo_sharding_of(sharding: TensorSharding, mesh: Mesh, manual_axes: Sequence[str] = ()) -> HloSharding:
    """The sharding of GSPMD with the same layout as `sharding` on `mesh`, within a part with these manual axes."""
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
    devices = tuple(np.argsort(places(named, mesh)).tolist())
    return HloSharding.tiled(TileAssignment(tuple(sizes), devices), subgroups)


def _common_mesh(meshes: Sequence[Mesh]) -> CommonMesh:
    """The mesh of some of `meshes`, the first at least, that is cut where any of these is, in the plainest order."""
    line = Mesh.of({"line": meshes[0].size})
    same_size = [mesh for mesh in meshes if mesh.size == line.size]
    in_order = [mesh for mesh in same_size if mesh in CommonMesh.of([line, mesh])]
    together = in_order or same_size
    if not in_order:
        line = replace(line, device_ids=together[0].device_order())
    cut = CommonMesh.of([line, *together]).mesh
    named = Mesh(tuple((f"axis_{index}", size) for index, (_, size) in enumerate(cut.axes)), cut.device_ids)
    return CommonMesh.over(named, together)


def _fits(mesh: Mesh, common: CommonMesh) -> bool:
    """Whether every axis of `mesh` is made of axes, or sub-axes, of the common mesh."""
    return all(common.axes([AxisRef(axis)], mesh) is not None for axis in mesh)


def _own_mesh(tiles: TileAssignment) -> Mesh:
    """The mesh whose axes are the dimensions of `tiles`, called by their number."""
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
