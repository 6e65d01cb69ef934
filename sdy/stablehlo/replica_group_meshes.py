"""The meshes that StableHLO's collectives name their groups of devices by."""

from collections.abc import Callable, Mapping, MutableMapping

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FlatSymbolRefAttr, SymbolRefAttr, TensorType, i64
from xdsl.ir import Attribute, Operation

from sdy.axes import AxisRef
from sdy.ir.walking import operations
from sdy.mesh import Mesh
from sdy.stablehlo.attributes.replica_groups import (
    MeshAttr,
    MeshAxis,
    ReplicaGroupMesh,
    ReplicaGroupMeshAxes,
    ReplicaGroupMeshAxesAttr,
)

_REPLICA_GROUPS = "replica_groups"


def transform_replica_group_meshes(root: Operation, change: Callable[[str | Mesh], str | Mesh]) -> None:
    """Replace each mesh, or name of one, in the replica groups of `root` by what `change` makes of it."""
    for operation in operations(root):
        for attributes in (operation.properties, operation.attributes):
            if _REPLICA_GROUPS in attributes:
                _transform(attributes, change)


def _transform(attributes: MutableMapping[str, Attribute], change: Callable[[str | Mesh], str | Mesh]) -> None:
    groups = attributes[_REPLICA_GROUPS]
    if isinstance(groups, ReplicaGroupMeshAxesAttr):
        old = mesh_or_name(groups.data.mesh)
        new = change(old)
        if new != old:
            attributes[_REPLICA_GROUPS] = ReplicaGroupMeshAxesAttr(
                ReplicaGroupMeshAxes(mesh_attribute(new), groups.data.axes)
            )


def axes_and_mesh(groups: ReplicaGroupMeshAxesAttr, meshes: Mapping[str, Mesh]) -> tuple[tuple[AxisRef, ...], Mesh]:
    """The axes along which the devices of a group lie, and their mesh; `meshes` are those that have names."""
    mesh = mesh_or_name(groups.data.mesh)
    return tuple(axis.data for axis in groups.data.axes), meshes[mesh] if isinstance(mesh, str) else mesh


def mesh_or_name(attribute: Attribute) -> str | Mesh:
    """The mesh that replica groups name, or, where it is written out, the mesh itself."""
    if isinstance(attribute, SymbolRefAttr):
        return attribute.string_value()
    assert isinstance(attribute, MeshAttr)
    axes = tuple((axis.name, axis.size) for axis in attribute.data.axes)
    ids = attribute.data.device_ids
    return Mesh(axes, tuple(ids.get_values()) if isinstance(ids, DenseIntOrFPElementsAttr) else ())


def mesh_attribute(mesh: str | Mesh) -> FlatSymbolRefAttr | MeshAttr:
    """How replica groups name a mesh, or write it out where it has no name."""
    if isinstance(mesh, str):
        return SymbolRefAttr(mesh)
    axes = tuple(MeshAxis(name, size) for name, size in mesh.axes)
    if not mesh.device_ids:
        return MeshAttr(ReplicaGroupMesh(axes))
    kind = TensorType(i64, [len(mesh.device_ids)])
    return MeshAttr(ReplicaGroupMesh(axes, DenseIntOrFPElementsAttr.from_list(kind, mesh.device_ids)))
