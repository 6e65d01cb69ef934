"""Emission of the StableHLO collectives of a partitioned program, and of their replica groups."""

from collections.abc import Sequence
from functools import lru_cache

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    IntegerType,
    TensorType,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Region, SSAValue

from sdy import stablehlo as hlo
from sdy.axes import AxisRef, total_size
from sdy.device_groups import device_groups
from sdy.mesh import Mesh
from sdy.passes.spmd.emit.device_shards import AxesOfDims, dims_with_axes, flat, merge_front, shape_of
from sdy.passes.spmd.emit.op_conversion import Target
from sdy.passes.spmd.shards.elements import IEEE_FLOATS
from sdy.passes.spmd.shards.layout import Layout
from sdy.stablehlo.attributes.replica_group_meshes import mesh_attribute
from sdy.stablehlo.attributes.replica_groups import AxisRefAttr, ReplicaGroupMeshAxes, ReplicaGroupMeshAxesAttr
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.elementwise import AddOp, CommutativeElementwiseOp, MaxOp, MinOp
from sdy.stablehlo.emitter import Emitter, with_shape
from sdy.stablehlo.reduction import reducer_body

_REDUCERS: dict[str, type[CommutativeElementwiseOp]] = {"sum": AddOp, "max": MaxOp, "min": MinOp}


def gather(emit: Emitter, value: SSAValue, axes_of_dims: AxesOfDims, layout: Layout, target: Target) -> SSAValue:
    """All-gather `value` along the axes of each dimension.

    Args:
        emit: The emitter of the collectives.
        value: The shard of the running device.
        axes_of_dims: For each dimension, the axes along which to gather its shards.
        layout: A layout over the mesh of the axes.
        target: Whether to emit one all-gather per dimension or a single one for all dimensions.
    """
    dims = dims_with_axes(axes_of_dims)
    sizes = [total_size(axes_of_dims[dim], layout.mesh) for dim in dims]
    if 0 in shape_of(value):
        shape = [size * total_size(axes, layout.mesh) for size, axes in zip(shape_of(value), axes_of_dims, strict=True)]
        return emit.filled(with_shape(value, shape), 0)

    def all_gather(value: SSAValue, dim: int, axes: Sequence[AxisRef]) -> SSAValue:
        properties = {"all_gather_dim": IntegerAttr(dim, i64), **between(axes, layout, target)}
        gathered = list(shape_of(value))
        gathered[dim] *= total_size(axes, layout.mesh)
        return emit.insert(
            hlo.AllGatherOp.create(operands=[value], properties=properties, result_types=[with_shape(value, gathered)])
        )

    if target.per_dim_all_gather or len(dims) <= 1:
        for dim in reversed(dims):
            value = all_gather(value, dim, axes_of_dims[dim])
        return value
    return merge_front(emit, all_gather(emit.reshape(value, (1, *shape_of(value))), 0, flat(axes_of_dims)), dims, sizes)


def all_reduce(
    emit: Emitter, value: SSAValue, axes: Sequence[AxisRef], reduction: str, layout: Layout, target: Target
) -> SSAValue:
    """All-reduce `value` over the devices along `axes` of the mesh of `layout`."""
    reduce = hlo.AllReduceOp.create(
        operands=[value],
        properties=between(axes, layout, target),
        result_types=[value.type],
        regions=[reducer(value, reduction)],
    )
    return emit.insert(reduce)


def all_reduce_bits(
    emit: Emitter, value: SSAValue, axes: Sequence[AxisRef], layout: Layout, target: Target
) -> SSAValue:
    """All-reduce the bits of `value` along `axes`, where each element is nonzero on at most one device.

    The bits are summed as integers, because an all-reduce of floats loses the sign of -0.0 and XLA widens narrow ones.
    """
    element_type = tensor_type(value).element_type
    if not isinstance(element_type, IEEE_FLOATS):
        return all_reduce(emit, value, axes, "sum", layout, target)
    bits = emit.bitcast(value, IntegerType(element_type.bitwidth))
    return emit.bitcast(all_reduce(emit, bits, axes, "sum", layout, target), element_type)


def between(axes: Sequence[AxisRef], layout: Layout, target: Target) -> dict[str, Attribute]:
    """Return the properties of a collective along `axes`: replica groups, channel and the use of global device ids."""
    return {
        "replica_groups": replica_groups(axes, layout, target),
        "channel_handle": target.channels.next(),
        "use_global_device_ids": UnitAttr(),
    }


def reducer(value: SSAValue, reduction: str) -> Region:
    """Build the reduction region of a collective on `value`."""
    return reducer_body(_REDUCERS[reduction], value)


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
