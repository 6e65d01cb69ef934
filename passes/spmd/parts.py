"""The parts of a tensor: which of them a device has, and where they are when several dimensions are cut."""

import math
from collections.abc import Sequence
from operator import lt

from xdsl.dialects.builtin import TensorType, i1
from xdsl.ir import Operation, SSAValue

from sdy.axes import AxisRef, total_size
from sdy.device_groups import shard_indices
from sdy.ir.shapes import shape_of
from sdy.mesh import Mesh
from sdy.passes.spmd.clamped_indices import clamp_start_indices
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.emitter import Emitter, with_shape

AxesOfDims = Sequence[Sequence[AxisRef]]
"""For each dimension, the axes that split it or are to."""


def offsets(axes: Sequence[AxisRef], size: int, mesh: Mesh) -> list[int]:
    """For each device, where its part of a dimension begins that `axes` split into parts of `size` elements."""
    return [index * size for index in shard_indices(axes, mesh)]


def take_part(emit: Emitter, value: SSAValue, axes_of_dims: AxesOfDims, mesh: Mesh) -> SSAValue:
    """The running device's part of `value`, which is the same on all devices along the axes, split over them."""
    if isinstance(value.owner, Operation):
        clamp_start_indices(value.owner)
    shape = [size // total_size(axes, mesh) for size, axes in zip(shape_of(value), axes_of_dims, strict=True)]
    starts = [emit.of_device(offsets(axes, size, mesh)) for size, axes in zip(shape, axes_of_dims, strict=True)]
    return emit.dynamic_slice(value, starts, shape)


def mask_to_first_shard(
    emit: Emitter, value: SSAValue, identity: float, axes: Sequence[AxisRef], mesh: Mesh
) -> SSAValue:
    """`value` on the first device along `axes`, and tensors filled with `identity` on the others."""
    return mask_to_devices(emit, value, identity, [index == 0 for index in shard_indices(axes, mesh)])


def mask_to_devices(emit: Emitter, value: SSAValue, identity: float, kept: Sequence[bool]) -> SSAValue:
    """`value` on the devices for which `kept` says so, and tensors filled with `identity` on the others."""
    if all(kept):
        return value
    shape = shape_of(value)
    filler = emit.filled(TensorType(tensor_type(value).element_type, ()), identity)
    is_kept = emit.entry_of_device(kept, i1)
    if not shape:
        return emit.select(emit.reshape(is_kept, ()), value, filler)
    return emit.select(emit.broadcast(is_kept, (0,), shape), value, emit.broadcast(filler, (), shape))


def part_in_place(
    emit: Emitter, value: SSAValue, axes_of_dims: AxesOfDims, shape: Sequence[int], mesh: Mesh
) -> SSAValue:
    """The beginning, of `shape`, of a tensor that is zero wherever the running device's part `value` is not.

    `axes_of_dims` split the tensor. A device whose part lies behind `shape` has nothing but zeros.
    """
    local = shape_of(value)
    used = [-(-size // of_part) for size, of_part in zip(shape, local, strict=True)]
    indices = [shard_indices(axes, mesh) for axes in axes_of_dims]
    kept = [all(map(lt, of_device, used)) for of_device in zip(*indices, strict=True)]
    value = mask_to_devices(emit, value, 0, kept)
    room = [count * of_part for count, of_part in zip(used, local, strict=True)]
    if tuple(room) != local:
        starts = [
            emit.of_device([min(index, count - 1) * of_part for index in of_dim])
            for of_dim, count, of_part in zip(indices, used, local, strict=True)
        ]
        value = emit.dynamic_update_slice(emit.filled(with_shape(value, room), 0), value, starts)
    return value if room == list(shape) else emit.slice(value, [0] * len(shape), shape)


def parts_in_front(emit: Emitter, value: SSAValue, dims: Sequence[int], sizes: Sequence[int]) -> SSAValue:
    """Each of `dims` cut into as many parts as `sizes` says, and all parts side by side in a new leading dimension."""
    cut: list[int] = []
    places: list[int] = []
    for dim, size in enumerate(shape_of(value)):
        if dim in dims:
            places.append(len(cut))
            parts = sizes[dims.index(dim)]
            cut += [parts, size // parts]
        else:
            cut.append(size)
    rest = [place for place in range(len(cut)) if place not in places]
    in_front = emit.transpose(emit.reshape(value, cut), places + rest)
    return emit.reshape(in_front, (math.prod(sizes), *(cut[place] for place in rest)))


def merge_front(emit: Emitter, value: SSAValue, dims: Sequence[int], sizes: Sequence[int]) -> SSAValue:
    """The inverse: the leading dimension cut into `sizes`, each of which becomes the major part of one of `dims`."""
    _, *shape = shape_of(value)
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


def dims_with_axes(axes_of_dims: AxesOfDims) -> list[int]:
    """The dimensions for which there are axes."""
    return [dim for dim, axes in enumerate(axes_of_dims) if axes]


def flat(axes_of_dims: AxesOfDims) -> list[AxisRef]:
    """The axes of all dimensions, one after the other."""
    return [axis for axes in axes_of_dims for axis in axes]
