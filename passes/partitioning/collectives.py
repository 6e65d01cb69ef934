"""SDY's collectives, which speak of axes, as StableHLO's, which speak of groups of devices.

A collective on one dimension has a counterpart. One on several dimensions at once is still one collective of StableHLO,
along a new leading dimension into which the parts of all dimensions are moved; the elements that are sent are the same.
"""

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr, TensorType, UnitAttr, i64
from xdsl.ir import Attribute, Region, SSAValue

from sdy import dialect
from sdy import stablehlo as hlo
from sdy.axes import AxisRef, total_size
from sdy.mesh import Mesh
from sdy.passes.common.device_groups import device_groups, places, shard_indices
from sdy.passes.partitioning.emitter import Emitter, before, with_shape
from sdy.passes.partitioning.site import Channels, Lowerings, Site
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.elementwise import AddOp, CommutativeElementwiseOp, MaxOp, MinOp
from sdy.stablehlo.reduction import reducer_body

AxesOfDims = Sequence[Sequence[AxisRef]]

COLLECTIVES = Lowerings()

REDUCERS: dict[str, type[CommutativeElementwiseOp]] = {"sum": AddOp, "max": MaxOp, "min": MinOp}


@COLLECTIVES.of(dialect.AllGatherOp)
def _all_gather(site: Site[dialect.AllGatherOp]) -> None:
    op = site.op
    site.replace(gather(before(op), op.tensor, op.gathering_axes.data, site.mesh, site.channels))


@COLLECTIVES.of(dialect.AllSliceOp)
def _all_slice(site: Site[dialect.AllSliceOp]) -> None:
    op = site.op
    site.replace(take_part(before(op), op.tensor, op.slicing_axes.data, site.mesh))


@COLLECTIVES.of(dialect.AllReduceOp)
def _all_reduce(site: Site[dialect.AllReduceOp]) -> None:
    op, mesh = site.op, site.mesh
    groups = _groups(op.reduction_axes.data, mesh)
    properties = {"replica_groups": groups, "channel_handle": site.channels.next(), "use_global_device_ids": UnitAttr()}
    reduce = hlo.AllReduceOp.create(
        operands=[op.tensor],
        properties=properties,
        result_types=[op.tensor.type],
        regions=[_reducer(op.tensor, op.reduction)],
    )
    site.replace(before(op).insert(reduce))


@COLLECTIVES.of(dialect.ReduceScatterOp)
def _reduce_scatter(site: Site[dialect.ReduceScatterOp]) -> None:
    op, mesh, emit = site.op, site.mesh, before(site.op)
    axes_of_dims = op.reduce_scatter_axes.data
    dims = _dims_with_axes(axes_of_dims)

    def scatter(value: SSAValue, dim: int, shape: Sequence[int]) -> SSAValue:
        properties = {
            "scatter_dimension": IntegerAttr(dim, i64),
            "replica_groups": _groups(_flat(axes_of_dims), mesh),
            "channel_handle": site.channels.next(),
            "use_global_device_ids": UnitAttr(),
        }
        return emit.insert(
            hlo.ReduceScatterOp.create(
                operands=[value],
                properties=properties,
                result_types=[with_shape(value, shape)],
                regions=[_reducer(value, op.reduction)],
            )
        )

    local = _shape(op.results[0])
    if len(dims) == 1:
        site.replace(scatter(op.tensor, dims[0], local))
        return
    parts = _parts_in_front(emit, op.tensor, dims, [total_size(axes_of_dims[dim], mesh) for dim in dims])
    site.replace(emit.reshape(scatter(parts, 0, (1, *local)), local))


@COLLECTIVES.of(dialect.AllToAllOp)
def _all_to_all(site: Site[dialect.AllToAllOp]) -> None:
    op, mesh, emit = site.op, site.mesh, before(site.op)
    params = sorted(op.params.data, key=lambda param: param.tgt_dim)
    sizes = [total_size(param.axes, mesh) for param in params]
    groups = _groups([axis for param in params for axis in param.axes], mesh)

    def exchange(value: SSAValue, split_dim: int, concat_dim: int, shape: Sequence[int]) -> SSAValue:
        properties: dict[str, Attribute] = {
            "split_dimension": IntegerAttr(split_dim, i64),
            "concat_dimension": IntegerAttr(concat_dim, i64),
            "split_count": IntegerAttr(math.prod(sizes), i64),
            "replica_groups": groups,
            "channel_handle": site.channels.next(),
        }
        return emit.insert(
            hlo.AllToAllOp.create(operands=[value], properties=properties, result_types=[with_shape(value, shape)])
        )

    if len(params) == 1:
        param = params[0]
        site.replace(exchange(op.tensor, param.tgt_dim, param.src_dim, _shape(op.results[0])))
        return
    parts = _parts_in_front(emit, op.tensor, [param.tgt_dim for param in params], sizes)
    received = exchange(parts, 0, 0, _shape(parts))
    site.replace(_merge_front(emit, received, [param.src_dim for param in params], sizes))


@COLLECTIVES.of(dialect.CollectivePermuteOp)
def _collective_permute(site: Site[dialect.CollectivePermuteOp]) -> None:
    """Each device of the result's layout gets its part from the one that has it; among equals, the order decides."""
    op = site.op
    source, target = site.operands[0], site.results[0]
    sources, targets = (
        _device_of_index(_flat(layout.sharding.dim_axes if layout.sharding else ()), layout.mesh)
        for layout in (source, target)
    )
    pairs = sorted(zip(sources, targets, strict=True))
    properties = {
        "source_target_pairs": _integers([number for pair in pairs for number in pair], (len(pairs), 2)),
        "channel_handle": site.channels.next(),
    }
    permute = hlo.CollectivePermuteOp.create(operands=[op.tensor], properties=properties, result_types=[op.tensor.type])
    site.replace(before(op).insert(permute))


def gather(emit: Emitter, value: SSAValue, axes_of_dims: AxesOfDims, mesh: Mesh, channels: Channels) -> SSAValue:
    """`value` with the parts that devices along the axes of each dimension have put one after the other."""
    dims = _dims_with_axes(axes_of_dims)
    sizes = [total_size(axes_of_dims[dim], mesh) for dim in dims]
    shape = _shape(value)

    def all_gather(value: SSAValue, dim: int) -> SSAValue:
        properties = {
            "all_gather_dim": IntegerAttr(dim, i64),
            "replica_groups": _groups(_flat(axes_of_dims), mesh),
            "channel_handle": channels.next(),
            "use_global_device_ids": UnitAttr(),
        }
        gathered = list(_shape(value))
        gathered[dim] *= math.prod(sizes)
        return emit.insert(
            hlo.AllGatherOp.create(operands=[value], properties=properties, result_types=[with_shape(value, gathered)])
        )

    if len(dims) == 1:
        return all_gather(value, dims[0])
    gathered = all_gather(emit.reshape(value, (1, *shape)), 0)
    return _merge_front(emit, gathered, dims, sizes)


def take_part(emit: Emitter, value: SSAValue, axes_of_dims: AxesOfDims, mesh: Mesh) -> SSAValue:
    """The running device's part of `value`, which is the same on all devices along the axes, split over them."""
    shape = [size // total_size(axes, mesh) for size, axes in zip(_shape(value), axes_of_dims, strict=True)]
    starts = [emit.of_device(offsets(axes, size, mesh)) for size, axes in zip(shape, axes_of_dims, strict=True)]
    return emit.dynamic_slice(value, starts, shape)


def offsets(axes: Sequence[AxisRef], size: int, mesh: Mesh) -> list[int]:
    """For each device, where its part of a dimension begins that `axes` split into parts of `size` elements."""
    return [index * size for index in shard_indices(axes, mesh)]


def _parts_in_front(emit: Emitter, value: SSAValue, dims: Sequence[int], sizes: Sequence[int]) -> SSAValue:
    """Each of `dims` cut into as many parts as `sizes` says, and all parts side by side in a new leading dimension."""
    cut: list[int] = []
    places: list[int] = []
    for dim, size in enumerate(_shape(value)):
        if dim in dims:
            places.append(len(cut))
            parts = sizes[dims.index(dim)]
            cut += [parts, size // parts]
        else:
            cut.append(size)
    rest = [place for place in range(len(cut)) if place not in places]
    in_front = emit.transpose(emit.reshape(value, cut), places + rest)
    return emit.reshape(in_front, (math.prod(sizes), *(cut[place] for place in rest)))


def _merge_front(emit: Emitter, value: SSAValue, dims: Sequence[int], sizes: Sequence[int]) -> SSAValue:
    """The inverse: the leading dimension cut into `sizes`, each of which becomes the major part of one of `dims`."""
    _, *shape = _shape(value)
    cut = emit.reshape(value, (*sizes, *shape))
    order: list[int] = []
    for dim in range(len(shape)):
        order += [place for place, into in enumerate(dims) if into == dim]
        order.append(len(sizes) + dim)
    merged = [
        size * math.prod(parts for parts, into in zip(sizes, dims, strict=True) if into == dim)
        for dim, size in enumerate(shape)
    ]
    return emit.reshape(emit.transpose(cut, order), merged)


def _device_of_index(axes: Sequence[AxisRef], mesh: Mesh) -> list[int]:
    """The devices in the order of their places along `axes` and then along all other axes."""
    return sorted(range(mesh.size), key=places(axes, mesh).__getitem__)


def _dims_with_axes(axes_of_dims: AxesOfDims) -> list[int]:
    return [dim for dim, axes in enumerate(axes_of_dims) if axes]


def _flat(axes_of_dims: AxesOfDims) -> list[AxisRef]:
    return [axis for axes in axes_of_dims for axis in axes]


def _groups(axes: Sequence[AxisRef], mesh: Mesh) -> DenseIntOrFPElementsAttr:
    groups = device_groups(axes, mesh)
    return _integers([device for group in groups for device in group], (len(groups), len(groups[0])))


def _integers(values: Sequence[int], shape: Sequence[int]) -> DenseIntOrFPElementsAttr:
    return DenseIntOrFPElementsAttr.from_list(TensorType(i64, shape), values)


def _reducer(value: SSAValue, reduction: str) -> Region:
    return reducer_body(REDUCERS[reduction], value)


def _shape(value: SSAValue) -> tuple[int, ...]:
    return tensor_type(value).get_shape()
