"""The devices that take part in a collective together, as StableHLO's collectives say them."""

from collections.abc import Sequence
from functools import lru_cache

from xdsl.dialects.builtin import ArrayAttr, DenseIntOrFPElementsAttr, TensorType, i64

from sdy.axes import AxisRef
from sdy.device_groups import device_groups
from sdy.mesh import Mesh
from sdy.passes.spmd.layout import Layout
from sdy.passes.spmd.target import Target
from sdy.stablehlo.attributes.replica_groups import AxisRefAttr, ReplicaGroupMeshAxes, ReplicaGroupMeshAxesAttr
from sdy.stablehlo.replica_group_meshes import mesh_attribute


def replica_groups(
    axes: Sequence[AxisRef], layout: Layout, target: Target
) -> DenseIntOrFPElementsAttr | ReplicaGroupMeshAxesAttr:
    """The groups of devices that differ along `axes` of the mesh of `layout` only.

    They are lists of device ids, or, if the target wants that and no axis is split, named by the axes.
    """
    assert layout.sharding is not None
    if target.groups_by_axes and all(axis.is_full for axis in axes):
        mesh = mesh_attribute(layout.sharding.mesh)
        return ReplicaGroupMeshAxesAttr(ReplicaGroupMeshAxes(mesh, ArrayAttr(map(AxisRefAttr, axes))))
    return groups_as_lists(tuple(axes), layout.mesh)


@lru_cache(maxsize=2**8)
def groups_as_lists(axes: tuple[AxisRef, ...], mesh: Mesh) -> DenseIntOrFPElementsAttr:
    """The groups of devices that differ along `axes` of `mesh` only, as a list of device ids each."""
    groups = device_groups(axes, mesh)
    return device_list([device for group in groups for device in group], (len(groups), len(groups[0])))


def device_list(devices: Sequence[int], shape: Sequence[int]) -> DenseIntOrFPElementsAttr:
    """Device ids in this shape, as replica groups and pairs of source and target are written."""
    return DenseIntOrFPElementsAttr.from_list(TensorType(i64, shape), devices)
