"""Lowering of SDY collectives over mesh axes to StableHLO collectives over replica groups.

An SDY collective on one dimension has a StableHLO counterpart. One on several dimensions is lowered to a single
StableHLO collective along a new leading dimension that holds the shards of all these dimensions.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import cast

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import Rewriter

from sdy import dialect
from sdy import stablehlo as hlo
from sdy.axes import AxisRef, total_size
from sdy.device_groups import permuted_devices, shard_indices
from sdy.dialect.collectives import CollectiveOp
from sdy.passes.common.replication_cost import LocalBytes, warn_of_cost
from sdy.passes.spmd.emit.communication import (
    all_reduce,
    all_reduce_bits,
    between,
    device_list,
    gather,
    reducer,
    replica_groups,
)
from sdy.passes.spmd.emit.compatibility import illegality_by_rule
from sdy.passes.spmd.emit.device_shards import (
    AxesOfDims,
    dims_with_axes,
    flat,
    mask_to_first_shard,
    merge_front,
    offsets,
    part_in_place,
    parts_in_front,
    shape_of,
    take_shard,
)
from sdy.passes.spmd.emit.illegality import Illegality
from sdy.passes.spmd.emit.op_conversion import OpConversion, PaddedConversion, Target, carries, unless_empty
from sdy.passes.spmd.emit.operation_partitioning import Lower, OperationPartitioning, PartitioningTable
from sdy.passes.spmd.emit.padding import Insertion, Padding
from sdy.passes.spmd.emit.resplitting import gather_after_exchange, resplit, slice_with_exchange
from sdy.passes.spmd.plan.unreduced_plan import in_mesh_order
from sdy.passes.spmd.reshard.resize_cost import collective_size
from sdy.passes.spmd.shards.layout import Layout
from sdy.sharding import TensorSharding
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.control_flow import OptimizationBarrierOp
from sdy.stablehlo.emitter import with_shape
from sdy.stablehlo.padding import PadOp
from sdy.stablehlo.slicing import DynamicUpdateSliceOp, SliceOp


@unless_empty
def _lower_all_gather(conversion: OpConversion[dialect.AllGatherOp]) -> None:
    op = conversion.op
    value, axes_of_dims = op.tensor, op.gathering_axes.data
    if conversion.target.planner.trims_messages:
        value, axes_of_dims = _sum_used_parts(conversion)
    conversion.replace(gather(conversion.before(), value, axes_of_dims, conversion.results[0], conversion.target))


_MOVES_ELEMENTS = (dialect.AllGatherOp, dialect.AllSliceOp, dialect.AllToAllOp, dialect.CollectivePermuteOp)


def _sum_used_parts(conversion: OpConversion[dialect.AllGatherOp]) -> tuple[SSAValue, AxesOfDims]:
    """Replace the all-gather of a mostly padded tensor by an all-reduce of the rows that its users, slices, read.

    Two rows over eight devices are padded to eight. In place of the gather, each device writes its row into a tensor of
    two rows that is zero elsewhere; devices that hold only padding have zeros:

        all-gather    a device receives seven rows
        all-reduce    a device receives 2 * 7/8 of two rows

    Returns:
        The tensor to gather, and the axes along which to gather each dimension: those of the dimensions for which an
        all-reduce receives more.
    """
    op, layout = conversion.op, conversion.results[0]
    gathered, local = op.gathering_axes.data, shape_of(op.tensor)
    if not op.result.uses or not all(isinstance(use.operation, SliceOp) for use in op.result.uses):
        return op.tensor, gathered
    limits = _limits(op.result)
    dims = [dim for dim in dims_with_axes(gathered) if not layout.axes[dim]]

    def used(summed: Sequence[int]) -> list[int]:
        return [limits[dim] if dim in summed else size for dim, size in enumerate(local)]

    def received(summed: Sequence[int]) -> float:
        """Return the elements that a device receives if dimensions `summed` are all-reduced, others gathered."""
        parts, summed_parts = (
            total_size(flat([gathered[dim] for dim in of_dims]), layout.mesh) for of_dims in (range(len(local)), summed)
        )
        return math.prod(used(summed)) * (2 * (1 - 1 / summed_parts) + parts // summed_parts - 1)

    summed = min((each for count in range(len(dims) + 1) for each in combinations(dims, count)), key=received)
    if not summed:
        return op.tensor, gathered
    axes_of_dims = [axes if dim in summed else () for dim, axes in enumerate(gathered)]
    emit = conversion.before()
    value = part_in_place(emit, op.tensor, axes_of_dims, used(summed), layout.mesh)
    value = all_reduce_bits(emit, value, flat(axes_of_dims), layout, conversion.target)
    return value, [() if dim in summed else axes for dim, axes in enumerate(gathered)]


def _limits(value: SSAValue) -> list[int]:
    """Return, for each dimension, the end of the range of rows that the users of `value`, all slices, read."""
    slices = [use.operation for use in value.uses if isinstance(use.operation, SliceOp)]
    ends = [[limit - (limit - start - 1) % stride for start, limit, stride in op.ranges()] for op in slices]
    return [max(of_dim) for of_dim in zip(*ends, strict=True)]


@unless_empty
def _lower_all_slice(conversion: OpConversion[dialect.AllSliceOp]) -> None:
    op = conversion.op
    conversion.replace(take_shard(conversion.before(), op.tensor, op.slicing_axes.data, conversion.results[0].mesh))


@unless_empty
def _lower_all_reduce(conversion: OpConversion[dialect.AllReduceOp]) -> None:
    op = conversion.op
    axes, layout = op.reduction_axes.data, conversion.results[0]
    conversion.replace(all_reduce(conversion.before(), op.tensor, axes, op.reduction, layout, conversion.target))


@unless_empty
def _lower_reduce_scatter(conversion: OpConversion[dialect.ReduceScatterOp]) -> None:
    """Lower a reduce-scatter.

    On several dimensions, an all-reduce and a slice need no transposition of shards, but send twice as much.
    """
    op, target, layout, emit = conversion.op, conversion.target, conversion.results[0], conversion.before()
    axes_of_dims = op.reduce_scatter_axes.data
    dims = dims_with_axes(axes_of_dims)

    def scatter(value: SSAValue, dim: int, shape: Sequence[int]) -> SSAValue:
        properties = {"scatter_dimension": IntegerAttr(dim, i64), **between(flat(axes_of_dims), layout, target)}
        return emit.insert(
            hlo.ReduceScatterOp.create(
                operands=[value],
                properties=properties,
                result_types=[with_shape(value, shape)],
                regions=[reducer(value, op.reduction)],
            )
        )

    local = shape_of(op.results[0])
    if len(dims) == 1:
        conversion.replace(scatter(op.tensor, dims[0], local))
    elif target.combine_multi_dimension_reduce_scatter:
        parts = parts_in_front(emit, op.tensor, dims, [total_size(axes_of_dims[dim], layout.mesh) for dim in dims])
        conversion.replace(emit.reshape(scatter(parts, 0, (1, *local)), local))
    else:
        reduced = all_reduce(emit, op.tensor, flat(axes_of_dims), op.reduction, layout, target)
        conversion.replace(take_shard(emit, reduced, axes_of_dims, layout.mesh))


@unless_empty
def _lower_all_to_all(conversion: OpConversion[dialect.AllToAllOp]) -> None:
    op, layout, emit = conversion.op, conversion.results[0], conversion.before()
    params = sorted(op.params.data, key=lambda param: param.tgt_dim)
    sizes = [total_size(param.axes, layout.mesh) for param in params]
    groups = replica_groups([axis for param in params for axis in param.axes], layout, conversion.target)

    def exchange(value: SSAValue, split_dim: int, concat_dim: int, shape: Sequence[int]) -> SSAValue:
        if isinstance(value.owner, PadOp):
            # XLA's CPU backend splits the operand into parts, replaces those of padding by constants with another
            # layout, and then refuses the all-to-all.
            value = emit.insert(OptimizationBarrierOp.create(operands=[value], result_types=[value.type]))
        properties: dict[str, Attribute] = {
            "split_dimension": IntegerAttr(split_dim, i64),
            "concat_dimension": IntegerAttr(concat_dim, i64),
            "split_count": IntegerAttr(math.prod(sizes), i64),
            "replica_groups": groups,
            "channel_handle": conversion.target.channels.next(),
        }
        return emit.insert(
            hlo.AllToAllOp.create(operands=[value], properties=properties, result_types=[with_shape(value, shape)])
        )

    if len(params) == 1:
        param = params[0]
        conversion.replace(exchange(op.tensor, param.tgt_dim, param.src_dim, shape_of(op.results[0])))
        return
    parts = parts_in_front(emit, op.tensor, [param.tgt_dim for param in params], sizes)
    received = exchange(parts, 0, 0, shape_of(parts))
    conversion.replace(merge_front(emit, received, [param.src_dim for param in params], sizes))


@unless_empty
def _lower_collective_permute(conversion: OpConversion[dialect.CollectivePermuteOp]) -> None:
    """Pair each device with one that holds its shard of the result.

    Devices that differ along manual axes are not replicas: they hold shards of different tensors.
    """
    op, manual_axes = conversion.op, [AxisRef(name) for name in conversion.manual_axes]
    before, after = conversion.operands[0], conversion.results[0]
    held, needed = (
        [*manual_axes, *flat(layout.sharding.dim_axes if layout.sharding else ())] for layout in (before, after)
    )
    pairs = permuted_devices(held, before.mesh, needed, after.mesh)
    properties = {
        "source_target_pairs": device_list([number for pair in pairs for number in pair], (len(pairs), 2)),
        "channel_handle": conversion.target.channels.next(),
    }
    permute = hlo.CollectivePermuteOp.create(operands=[op.tensor], properties=properties, result_types=[op.tensor.type])
    conversion.replace(conversion.before().insert(permute))


def _pad(padded: PaddedConversion[CollectiveOp]) -> bool:
    """Pad the operand to sizes that the numbers of shards before and after the collective both divide."""
    op, padding = padded.op, padded.padding
    [before], [after], target = padded.operands, padded.results, padded.conversion.target
    sizes = enumerate(zip(before.padded_shape, after.padded_shape, strict=True))
    shape = [collective_size(*size, before.parts(dim), after.parts(dim)) for dim, size in sizes]
    op.operands[0] = _resized(Insertion.before(op), op.tensor, before, shape, padding, target)
    users = list(op.result.uses)
    result = Rewriter.replace_value_with_new_type(op.result, op.tensor.type)
    if isinstance(op, _MOVES_ELEMENTS) or padding.holds(op.tensor, 0):
        padding.mark_filled(result, op.tensor)
    resized = _resized(Insertion.after(op), result, after, after.padded_shape, padding, target)
    for use in users:
        use.operation.operands[use.index] = resized
    return True


def _pad_all_slice(padded: PaddedConversion[dialect.AllSliceOp]) -> bool:
    """Pad an all-slice, or replace it by an exchange of rows if its shard boundaries move."""
    op, [before], [after], target = padded.op, padded.operands, padded.results, padded.conversion.target
    if not target.planner.minimizes_padding:
        return _pad(padded)
    return _replace(op, slice_with_exchange(Insertion.before(op), op.tensor, before, after, target)) or _pad(padded)


def _pad_all_gather(padded: PaddedConversion[dialect.AllGatherOp]) -> bool:
    """Pad an all-gather; if its shard boundaries move, devices exchange rows before it."""
    op, [before], [after], target = padded.op, padded.operands, padded.results, padded.conversion.target
    if not target.planner.minimizes_padding:
        return _pad(padded)
    return _replace(op, gather_after_exchange(Insertion.before(op), op, before, after, target)) or _pad(padded)


def _replace(op: CollectiveOp, value: SSAValue | None) -> bool:
    """Replace `op` by `value`, if any; return whether there is one."""
    if value is not None:
        Rewriter.replace_op(op, [], [value])
    return value is not None


def _pad_reduce_scatter(padded: PaddedConversion[dialect.ReduceScatterOp]) -> bool:
    """Pad a reduce-scatter, or replace it by an unpadded all-reduce and a slice if the planner prefers these."""
    conversion, op = padded.conversion, padded.op
    [before], [after] = padded.operands, padded.results
    axes = flat(op.reduce_scatter_axes.data)
    scattered = total_size(axes, after.mesh) * after.local_bytes
    if before.sharding is None or not conversion.target.planner.prefers_all_reduce(before.local_bytes, scattered):
        return _pad(padded)
    out_sharding = op.out_sharding.data
    unscattered = TensorSharding(out_sharding.mesh, before.sharding.dims)
    combined = dialect.AllReduceOp(op.tensor, in_mesh_order(axes, after.mesh), unscattered, op.reduction)
    part = dialect.AllSliceOp(combined.result, op.reduce_scatter_axes.data, out_sharding)
    for new in (combined, part):
        new.location = op.location
    Rewriter.replace_op(op, [combined, part])
    return _pad(replace(padded, conversion=replace(conversion, op=part)))


def _resized(
    at: Insertion, value: SSAValue, layout: Layout, shape: Sequence[int], padding: Padding, target: Target
) -> SSAValue:
    """Return `value` padded to `shape` instead.

    If this moves elements between shards, devices exchange them, or gather the dimension and slice it again.
    """
    dims = [dim for dim in layout.split_dims if tensor_type(value).get_shape()[dim] != shape[dim]]
    if dims and target.planner.minimizes_padding and (parts := resplit(at, value, layout, dims, shape, target)):
        return padding.resize(at, parts, layout, shape)
    if dims:
        what = f"gathers dimensions {dims}, which need different padding before and after"
        warn_of_cost(
            at.source, what, LocalBytes(layout.local_bytes, 0), LocalBytes(layout.without(dims).local_bytes, 0)
        )
    gathered = padding.gather(at, value, layout, dims)
    return padding.split(at, padding.resize(at, gathered, layout.without(dims), shape), layout, dims)


def _pad_permute_of_devices(conversion: PaddedConversion[hlo.CollectivePermuteOp]) -> bool:
    return conversion.operands[0].padded_shape == conversion.results[0].padded_shape


def _illegality_permuted(
    op: hlo.CollectivePermuteOp, operands: Sequence[Layout], results: Sequence[Layout]
) -> Illegality | None:
    return None if _permutes_like_parts(op, operands[0], results[0]) else illegality_by_rule(op, operands, results)


def _permutes_like_parts(op: hlo.CollectivePermuteOp, operand: Layout, result: Layout) -> bool:
    """Return whether the source and the target of each pair hold the same shard."""
    numbers = cast(Sequence[int], op.source_target_pairs.get_values())
    parts = [shard_indices(axes, operand.mesh) for axes in operand.axes]
    return operand.axes == result.axes and all(
        part[source] == part[target]
        for source, target in zip(numbers[::2], numbers[1::2], strict=True)
        for part in parts
    )


def _lower_replicated_to_unreduced(conversion: OpConversion[dialect.ReplicatedToUnreducedOp]) -> None:
    op = conversion.op
    conversion.replace(mask_to_first_shard(conversion.before(), op.tensor, 0, op.axes.data, conversion.results[0].mesh))


def _lower_sharded_to_unreduced(conversion: OpConversion[dialect.ShardedToUnreducedOp]) -> None:
    """Write each device's shard at its offset into a tensor of zeros."""
    op, emit, mesh = conversion.op, conversion.before(), conversion.results[0].mesh
    zeros = emit.filled(tensor_type(op.result), 0)
    shape = tensor_type(op.tensor).get_shape()
    starts = [emit.of_device(offsets(axes, size, mesh)) for axes, size in zip(op.axes.data, shape, strict=True)]
    update = DynamicUpdateSliceOp.create(operands=[zeros, op.tensor, *starts], result_types=[zeros.type])
    conversion.replace(emit.insert(update))


_LOWERINGS: dict[type[CollectiveOp], Lower] = {
    dialect.AllReduceOp: _lower_all_reduce,
    dialect.AllToAllOp: _lower_all_to_all,
    dialect.CollectivePermuteOp: _lower_collective_permute,
    dialect.ReplicatedToUnreducedOp: _lower_replicated_to_unreduced,
    dialect.ShardedToUnreducedOp: _lower_sharded_to_unreduced,
}

_ACROSS_DEVICES = (hlo.AllGatherOp, hlo.AllReduceOp, hlo.AllToAllOp, hlo.CollectiveBroadcastOp, hlo.ReduceScatterOp)
"""Collectives of functions of `jax.shard_map`, which treat the elements along the other dimensions alike."""

PARTITIONING: PartitioningTable = {
    **dict.fromkeys(_ACROSS_DEVICES, OperationPartitioning(pad=carries)),
    hlo.CollectivePermuteOp: OperationPartitioning(pad=_pad_permute_of_devices, illegality=_illegality_permuted),
    **{op: OperationPartitioning(pad=_pad, lower=lower, always_lowered=True) for op, lower in _LOWERINGS.items()},
    dialect.AllGatherOp: OperationPartitioning(pad=_pad_all_gather, lower=_lower_all_gather, always_lowered=True),
    dialect.AllSliceOp: OperationPartitioning(pad=_pad_all_slice, lower=_lower_all_slice, always_lowered=True),
    dialect.ReduceScatterOp: OperationPartitioning(
        pad=_pad_reduce_scatter, lower=_lower_reduce_scatter, always_lowered=True
    ),
}
