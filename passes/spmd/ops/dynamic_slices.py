"""Dynamic slices and updates along split dimensions: each device reads or writes the overlap with its own shard."""

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType, i64
from xdsl.ir import SSAValue

from sdy.passes.spmd.emit.communication import all_reduce_bits
from sdy.passes.spmd.emit.compatibility import illegality_by_rule
from sdy.passes.spmd.emit.device_shards import clamped, offsets, shape_of
from sdy.passes.spmd.emit.illegality import Illegality, Reason
from sdy.passes.spmd.emit.op_conversion import OpConversion, PaddedConversion
from sdy.passes.spmd.emit.operation_partitioning import OperationPartitioning, PartitioningTable
from sdy.passes.spmd.emit.replicate import replicate
from sdy.passes.spmd.shards.elements import bounds
from sdy.passes.spmd.shards.layout import Layout
from sdy.stablehlo.attributes.operation_attributes import I64Array, i64_array
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.elementwise import SubtractOp
from sdy.stablehlo.emitter import Emitter
from sdy.stablehlo.padding import PadOp
from sdy.stablehlo.slicing import DynamicSliceOp, DynamicUpdateSliceOp


def _summed_dims(operand: Layout, result: Layout) -> list[int]:
    """Return the split dimensions that are sliced into a replicated result by an all-reduce of each device's rows."""
    return [dim for dim in operand.split_dims if operand.shape[dim] != result.shape[dim] and not result.axes[dim]]


def _illegality_sliced(op: DynamicSliceOp, operands: Sequence[Layout], results: Sequence[Layout]) -> Illegality | None:
    """Return why the slice cannot be partitioned: dimensions that are all-reduced may be split, others by the rule."""
    operand, *indices = operands
    rest = operand.without(_summed_dims(operand, results[0]))
    is_split = any(layout.is_split for layout in (rest, *indices, *results))
    return illegality_by_rule(op, (rest, *indices), results) if is_split else None


def _pad_slice(conversion: PaddedConversion[DynamicSliceOp]) -> bool:
    """Pad the operand; in an uneven all-reduced dimension, clamp the start index as in the unpadded operand."""
    op, operand, result = conversion.op, conversion.operands[0], conversion.results[0]
    summed = _summed_dims(operand, result)
    if not conversion.carries(moved={0: summed}):
        return False
    sizes = op.slice_sizes.get_values()
    for dim in set(summed) & set(operand.uneven_dims):
        last = operand.shape[dim] - sizes[dim]
        op.operands[1 + dim] = clamped(conversion.conversion.before(), op.start_indices[dim], [last], ())
    op.slice_sizes = _padded_sizes(sizes, result)
    return True


def _padded_sizes(sizes: Sequence[int], layout: Layout) -> I64Array:
    uneven = layout.uneven_dims
    return i64_array(*(layout.padded_shape[dim] if dim in uneven else size for dim, size in enumerate(sizes)))


def _lower_slice(conversion: OpConversion[DynamicSliceOp]) -> None:
    """Lower a dynamic slice.

    A dimension that is split in the result is not sliced: its slice is the full local size, so that its start index
    is clamped to 0. For an all-reduced dimension, each device reads its rows of the slice, with zeros for the others,
    and all devices sum these.
    """
    op, operand = conversion.op, conversion.operands[0]
    sizes = shape_of(op.result)
    op.slice_sizes = i64_array(*sizes)
    summed = _summed_dims(operand, conversion.results[0])
    if not summed:
        return
    emit, local = conversion.before(), shape_of(op.operand)
    starts = [emit.convert(start, i64) for start in op.start_indices]
    inside = [emit.integers([0], ())] * len(sizes)
    for dim in summed:
        starts[dim], inside[dim] = _window(emit, op.start_indices[dim], operand, dim, local[dim], sizes[dim])
    window = emit.dynamic_slice(op.operand, starts, list(map(min, sizes, local)))
    own = emit.dynamic_slice(_between_margins(emit, window, sizes, summed), inside, sizes)
    axes = [axis for dim in summed for axis in operand.axes[dim]]
    conversion.replace(all_reduce_bits(emit, own, axes, operand, conversion.target))


def _window(
    emit: Emitter, index: SSAValue, operand: Layout, dim: int, local: int, size: int
) -> tuple[SSAValue, SSAValue]:
    """Return the start of the window of a device's shard that is nearest to a slice, and the slice's start in it.

    The window has the size of the slice, or of the shard if that is smaller. The second start counts from the
    beginning of the window padded by `size` rows on both sides.

    Args:
        emit: Emitter of the operations.
        index: The start index of the slice in the global dimension.
        operand: The layout of the sliced tensor.
        dim: The dimension.
        local: The size of the shard.
        size: The size of the slice.
    """
    type_ = tensor_type(index)
    last = emit.filled(type_, min(operand.shape[dim] - size, bounds(type_.element_type)[1]))
    start = emit.convert(emit.clamp(emit.filled(type_, 0), index, last), i64)
    start = emit.add(start, emit.of_device([-first for first in offsets(operand.axes[dim], local, operand.mesh)]))
    begin = emit.clamp(emit.integers([0], ()), start, emit.integers([local - min(size, local)], ()))
    return begin, emit.add(emit.binary(SubtractOp, start, begin), emit.integers([size], ()))


def _between_margins(emit: Emitter, window: SSAValue, sizes: Sequence[int], dims: Sequence[int]) -> SSAValue:
    """Return `window` padded on both sides with zeros, by the slice's size along each of `dims`."""
    margins = [size if dim in dims else 0 for dim, size in enumerate(sizes)]
    filling = emit.filled(TensorType(tensor_type(window).element_type, ()), 0)
    return emit.insert(PadOp(window, filling, margins, margins))


def _pad_update(conversion: PaddedConversion[DynamicUpdateSliceOp]) -> bool:
    """Pad the operand; if the update is smaller in an uneven dimension, clamp the start as in the unpadded operand."""
    op, operand, update = conversion.op, conversion.operands[0], conversion.operands[1]
    if not conversion.carries():
        return False
    for dim in operand.uneven_dims:
        if update.shape[dim] == operand.shape[dim]:
            continue
        start = op.start_indices[dim]
        op.operands[2 + dim] = clamped(
            conversion.conversion.before(), start, [operand.shape[dim] - update.shape[dim]], ()
        )
    return True


def _lower_update(conversion: OpConversion[DynamicUpdateSliceOp]) -> None:
    """Lower a dynamic update: each device writes the overlap of the update with its shard.

    The device slices the window of its shard that is nearest to the update, pads it by the size of the update, so that
    rows outside the shard go into the padding, writes the update, removes the padding and writes the window back.
    """
    op, operand, update = conversion.op, conversion.operands[0], conversion.operands[1]
    partial = [dim for dim in operand.split_dims if update.shape[dim] != operand.shape[dim]]
    if any(update.axes[dim] for dim in partial):
        replicate(conversion, Reason.SMALLER_UPDATE)
        return
    if not partial:
        return
    emit = conversion.before()
    local, sizes = shape_of(op.operand), shape_of(op.update)
    starts = [emit.convert(start, i64) for start in op.start_indices]
    inside = [emit.integers([0], ())] * len(sizes)
    for dim in partial:
        starts[dim], inside[dim] = _window(emit, op.start_indices[dim], operand, dim, local[dim], sizes[dim])
    window_sizes = list(map(min, sizes, local))
    window = emit.dynamic_slice(op.operand, starts, window_sizes)
    updated = emit.insert(_update(_between_margins(emit, window, sizes, partial), op.update, inside))
    low = [size if dim in partial else 0 for dim, size in enumerate(sizes)]
    limits = [margin + size for margin, size in zip(low, window_sizes, strict=True)]
    conversion.replace(emit.insert(_update(op.operand, emit.slice(updated, low, limits), starts)))


def _update(operand: SSAValue, update: SSAValue, starts: Sequence[SSAValue]) -> DynamicUpdateSliceOp:
    return DynamicUpdateSliceOp.create(operands=[operand, update, *starts], result_types=[operand.type])


PARTITIONING: PartitioningTable = {
    DynamicSliceOp: OperationPartitioning(pad=_pad_slice, illegality=_illegality_sliced, lower=_lower_slice),
    DynamicUpdateSliceOp: OperationPartitioning(pad=_pad_update, lower=_lower_update),
}
