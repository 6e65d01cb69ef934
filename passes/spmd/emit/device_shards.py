"""Shards of tensors: slicing, masking and placing the shard of the running device."""

import math
from collections.abc import Sequence
from operator import lt
from typing import cast

from xdsl.dialects.builtin import IntegerType, TensorType, i1
from xdsl.ir import Operation, SSAValue

from sdy.axes import AxisRef, total_size
from sdy.device_groups import shard_indices
from sdy.ir.shapes import shape_of
from sdy.mesh import Mesh
from sdy.passes.spmd.shards.elements import bounds, is_constant
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.emitter import Emitter, before, with_shape
from sdy.stablehlo.gather import GatherOp
from sdy.stablehlo.slicing import DynamicSliceOp

AxesOfDims = Sequence[Sequence[AxisRef]]
"""The axes of each dimension."""


def offsets(axes: Sequence[AxisRef], size: int, mesh: Mesh) -> list[int]:
    """Return the start index of each device's shard in a dimension that `axes` split into shards of `size` elements."""
    return [index * size for index in shard_indices(axes, mesh)]


def take_shard(emit: Emitter, value: SSAValue, axes_of_dims: AxesOfDims, mesh: Mesh) -> SSAValue:
    """Slice the running device's shard from `value`, which is replicated along the axes."""
    if isinstance(value.owner, Operation):
        clamp_start_indices(value.owner)
    shape = [size // total_size(axes, mesh) for size, axes in zip(shape_of(value), axes_of_dims, strict=True)]
    starts = [emit.of_device(offsets(axes, size, mesh)) for size, axes in zip(shape, axes_of_dims, strict=True)]
    return emit.dynamic_slice(value, starts, shape)


def mask_to_first_shard(
    emit: Emitter, value: SSAValue, identity: float, axes: Sequence[AxisRef], mesh: Mesh
) -> SSAValue:
    """Keep `value` on the first device along `axes` and fill it with `identity` on the others."""
    return mask_to_devices(emit, value, identity, [index == 0 for index in shard_indices(axes, mesh)])


def mask_to_devices(emit: Emitter, value: SSAValue, identity: float, kept: Sequence[bool]) -> SSAValue:
    """Keep `value` on the devices whose entry in `kept` is true and fill it with `identity` on the others."""
    if all(kept) or is_constant(value, identity):
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
    """Place the running device's shard in an unpartitioned tensor of zeros.

    Args:
        emit: The emitter.
        value: The shard.
        axes_of_dims: The axes of each dimension of the unpartitioned tensor.
        shape: The shape to which the tensor is sliced; a shard beyond it is dropped.
        mesh: The mesh of the axes.
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
    """Split each of `dims` into the number of parts in `sizes`, and move all parts to a new leading dimension."""
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
    """Split the leading dimension into `sizes` and merge each into one of `dims`: the inverse of `parts_in_front`."""
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
    """Return the dimensions with axes."""
    return [dim for dim, axes in enumerate(axes_of_dims) if axes]


def flat(axes_of_dims: AxesOfDims) -> list[AxisRef]:
    """Return the axes of all dimensions, concatenated."""
    return [axis for axes in axes_of_dims for axis in axes]


def clamp_start_indices(op: Operation) -> None:
    """Clamp the start indices of `op`, if it is a dynamic slice, because its result will be sliced again.

    XLA merges the two slices and adds their start indices before it clamps them, which is wrong if the inner one is out
    of bounds. XLA also treats a gather with a single index vector as a slice.
    """
    emit = before(op)
    if isinstance(op, DynamicSliceOp):
        sizes = zip(tensor_type(op.operand).get_shape(), op.slice_sizes.get_values(), strict=True)
        for dim, (size, slice_size) in enumerate(sizes):
            op.operands[1 + dim] = clamped(emit, op.start_indices[dim], [size - slice_size], ())
    elif isinstance(op, GatherOp) and (dims := op.dimension_numbers.data.start_index_map):
        shape, vector_dim = tensor_type(op.start_indices).get_shape(), op.dimension_numbers.data.index_vector_dim
        if math.prod(shape) == len(dims):
            sizes, slice_sizes = tensor_type(op.operand).get_shape(), op.slice_sizes.get_values()
            along = (vector_dim,) if vector_dim < len(shape) else ()
            op.operands[1] = clamped(emit, op.start_indices, [sizes[dim] - slice_sizes[dim] for dim in dims], along)


def clamped(emit: Emitter, indices: SSAValue, last: Sequence[int], along: Sequence[int]) -> SSAValue:
    """Clamp `indices` to between 0 and `last`.

    Args:
        emit: The emitter of the clamp.
        indices: The start indices.
        last: The upper bounds, one for each position of the index vector.
        along: The dimension of the index vector, or empty for a single index.
    """
    type_ = tensor_type(indices)
    element_type = cast(IntegerType, type_.element_type)
    greatest = int(bounds(element_type)[1])
    limits = emit.integers([min(each, greatest) for each in last], [len(last)] * len(along), element_type)
    high = emit.broadcast(limits, along, type_.get_shape()) if type_.get_shape() else limits
    return emit.clamp(emit.filled(type_, 0), indices, high)
