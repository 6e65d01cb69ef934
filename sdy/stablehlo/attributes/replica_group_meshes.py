"""The meshes of replica groups along mesh axes."""

from collections.abc import Callable, Mapping

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FlatSymbolRefAttr, SymbolRefAttr, TensorType, i64
from xdsl.ir import Attribute

from sdy.axes import AxisRef
from sdy.mesh import Mesh
from sdy.stablehlo.attributes.replica_groups import (
    MeshAttr,
    MeshAxis,
    ReplicaGroupMesh,
    ReplicaGroupMeshAxes,
    ReplicaGroupMeshAxesAttr,
)


def transform_mesh(attribute: Attribute, change: Callable[[str | Mesh], str | Mesh]) -> Attribute:
    """Apply `change` to the mesh or mesh name of replica groups; other attributes are returned unchanged."""
    # Called for all attributes of a module; `isinstance` is slow on abstract classes when the answer is no.
    if type(attribute) is not ReplicaGroupMeshAxesAttr:
        return attribute
    old = mesh_or_name(attribute.data.mesh)
    new = change(old)
    if new == old:
        return attribute
    return ReplicaGroupMeshAxesAttr(ReplicaGroupMeshAxes(mesh_attribute(new), attribute.data.axes))


def axes_and_mesh(groups: ReplicaGroupMeshAxesAttr, meshes: Mapping[str, Mesh]) -> tuple[tuple[AxisRef, ...], Mesh]:
    """Return the axes that the groups span and their mesh; `meshes` are the mesh symbols."""
    mesh = mesh_or_name(groups.data.mesh)
    return tuple(axis.data for axis in groups.data.axes), meshes[mesh] if isinstance(mesh, str) else mesh


def mesh_or_name(attribute: Attribute) -> str | Mesh:
    """Return the mesh name of replica groups, or their inline mesh."""
    if isinstance(attribute, SymbolRefAttr):
        return attribute.string_value()
    assert isinstance(attribute, MeshAttr)
    axes = tuple((axis.name, axis.size) for axis in attribute.data.axes)
    ids = attribute.data.device_ids
    return Mesh(axes, tuple(ids.get_values()) if isinstance(ids, DenseIntOrFPElementsAttr) else ())


def mesh_attribute(mesh: str | Mesh) -> FlatSymbolRefAttr | MeshAttr:
    """Return the attribute of a mesh name, or of an inline mesh."""
    if isinstance(mesh, str):
        return SymbolRefAttr(mesh)
    axes = tuple(MeshAxis(name, size) for name, size in mesh.axes)
    if not mesh.device_ids:
        return MeshAttr(ReplicaGroupMesh(axes))
    kind = TensorType(i64, [len(mesh.device_ids)])
    return MeshAttr(ReplicaGroupMesh(axes, DenseIntOrFPElementsAttr.from_list(kind, mesh.device_ids)))
