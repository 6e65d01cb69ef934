"""Replica groups of StableHLO collectives."""

from collections.abc import Sequence
from functools import lru_cache

from xdsl.dialects.builtin import ArrayAttr, DenseIntOrFPElementsAttr, TensorType, i64

from sdy.axes import AxisRef
from sdy.device_groups import device_groups
from sdy.mesh import Mesh
from sdy.passes.spmd.layout import Layout
from sdy.passes.spmd.target import Target
from sdy.stablehlo.attributes.replica_group_meshes import mesh_attribute
from sdy.stablehlo.attributes.replica_groups import AxisRefAttr, ReplicaGroupMeshAxes, ReplicaGroupMeshAxesAttr


def replica_groups(
    axes: Sequence[AxisRef], layout: Layout, target: Target
) -> DenseIntOrFPElementsAttr | ReplicaGroupMeshAxesAttr:
    """Return the replica groups of a collective along `axes` of the mesh of `layout`.

    They are lists of device ids, or mesh axes if the target has `groups_by_axes` and none is a sub-axis.
    """
    assert layout.sharding is not None
    if target.groups_by_axes and all(axis.is_full for axis in axes):
        mesh = mesh_attribute(layout.sharding.mesh)
        return ReplicaGroupMeshAxesAttr(ReplicaGroupMeshAxes(mesh, ArrayAttr(map(AxisRefAttr, axes))))
    return groups_as_lists(tuple(axes), layout.mesh)


@lru_cache(maxsize=2**8)
def groups_as_lists(axes: tuple[AxisRef, ...], mesh: Mesh) -> DenseIntOrFPElementsAttr:
    """Return the replica groups of a collective along `axes` of `mesh`, as lists of device ids."""
    groups = device_groups(axes, mesh)
    return device_list([device for group in groups for device in group], (len(groups), len(groups[0])))


def device_list(devices: Sequence[int], shape: Sequence[int]) -> DenseIntOrFPElementsAttr:
    """Return device ids as a tensor of this shape, the format of replica groups and source-target pairs."""
    return DenseIntOrFPElementsAttr.from_list(TensorType(i64, shape), devices)
