"""Pads and slices along split dimensions: each shard of the result needs a static range of rows of the operand.

If these are rows of the same device's shard, devices exchange nothing:

    slice [0:8:2]           0 1 2 3 | 4 5 6 7   ->   0 2 | 4 6
    pad by -1 at each end   0 1 2 3 | 4 5 6 7   ->   1 2 3 | 4 5 6
"""

from collections.abc import Callable, Sequence

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from sdy.device_groups import shard_indices
from sdy.diagnostics import warn
from sdy.dialect.shardings import get_sharding, set_sharding
from sdy.ir.editing import replace
from sdy.ir.walking import operations_of
from sdy.passes.spmd.emit.compatibility import illegality_by_dims
from sdy.passes.spmd.emit.device_shards import shape_of
from sdy.passes.spmd.emit.exchange import DimExchange, Filler
from sdy.passes.spmd.emit.exchange_builder import ExchangeBuilder, TensorEmitter
from sdy.passes.spmd.emit.illegality import Illegality
from sdy.passes.spmd.emit.op_conversion import OpConversion, PaddedConversion, unless_empty
from sdy.passes.spmd.emit.operation_partitioning import OperationPartitioning, PartitioningTable
from sdy.passes.spmd.emit.replicated_factors import permuting_rule, replicate_factors
from sdy.passes.spmd.emit.resolution import (
    Resolution,
    filler_of,
    layout_of,
    pad_to,
    unpad,
    zero_filler,
)
from sdy.passes.spmd.shards.halo import ReadRanges, full_shards
from sdy.passes.spmd.shards.layout import Layout
from sdy.passes.spmd.shards.sliding_window import sliced_dims, slices_before_exchange
from sdy.sharding import TensorSharding
from sdy.stablehlo.attributes.operation_attributes import i64_array
from sdy.stablehlo.emitter import before
from sdy.stablehlo.padding import PadOp
from sdy.stablehlo.slicing import SliceOp


def _replicate(op: PadOp | SliceOp, resolution: Resolution) -> bool:
    """Replicate the dimensions along which, by Shardy's criterion, a shard of the result has rows of another shard."""
    if (rule := permuting_rule(op)) is None:
        return False

    def stays(ranges: ReadRanges) -> bool:
        if isinstance(op, SliceOp):
            return ranges.is_identity
        return ranges.dilation == 1 and len(full_shards(ranges).pieces) == 1

    staying = [dim for dim, ranges in _ranges_by_dim(op).items() if stays(ranges)]
    factors = set(rule.permutation) - {factor for dim in staying for factor in rule.operands[0][dim]}
    return bool(factors) and replicate_factors(op, rule, factors)


def _illegality(op: PadOp | SliceOp, operands: Sequence[Layout], results: Sequence[Layout]) -> Illegality | None:
    def stays(dim: int, parts: int, sizes: Sequence[int]) -> bool:
        before, after = sizes
        return sliced_dims(op)[dim].ranges(before * parts, after * parts, parts).stays

    return illegality_by_dims(operands, results, stays)


def _ranges_by_dim(op: PadOp | SliceOp) -> dict[int, ReadRanges]:
    before, after = layout_of(op.operand), layout_of(op.result)
    dims = sliced_dims(op)
    return {dim: dims[dim].ranges(before.shape[dim], after.shape[dim], before.parts(dim)) for dim in before.split_dims}


def _exchange_for_pad(op: PadOp, resolution: Resolution) -> bool:
    """Exchange rows for the padding of split dimensions; each device pads the other dimensions locally."""
    columns = [column.get_values() for column in (op.edge_padding_low, op.edge_padding_high, op.interior_padding)]
    unsplit_dims = _unsplit_dims(op)

    def pad_unsplit_dims(emit: TensorEmitter, value: SSAValue, filler: SSAValue) -> SSAValue:
        low, high, interior = (
            [size if dim in unsplit_dims else 0 for dim, size in enumerate(column)] for column in columns
        )
        return emit.insert(PadOp(value, filler, low, high, interior)) if any((*low, *high, *interior)) else value

    return _resize(op, filler_of(op.padding_value), pad_unsplit_dims, resolution)


def _exchange_for_slice(op: SliceOp, resolution: Resolution) -> bool:
    """Exchange rows for the slice of split dimensions, from the first to the last row of each device's shard."""
    unsplit_dims = _unsplit_dims(op)

    def slice_unsplit_dims(emit: TensorEmitter, value: SSAValue, _: SSAValue) -> SSAValue:
        ranges = [
            (start, limit, stride) if dim in unsplit_dims else (0, size, stride)
            for dim, (size, (start, limit, stride)) in enumerate(zip(shape_of(value), op.ranges(), strict=True))
        ]
        if all(each == (0, size, 1) for each, size in zip(ranges, shape_of(value), strict=True)):
            return value
        starts, limits, strides = zip(*ranges, strict=True)
        return emit.slice(value, starts, limits, strides)

    return _resize(op, None, slice_unsplit_dims, resolution)


def split_slices(module: Operation) -> None:
    """Slice unsplit dimensions first where less is sent then; see `slices_before_exchange`."""
    for op in [op for op in operations_of(module, SliceOp) if _slices_first(op)]:
        dims, emit = _unsplit_dims(op), before(op)
        whole = [(0, size, 1) for size in shape_of(op.operand)]
        ranges = [each if dim in dims else whole[dim] for dim, each in enumerate(op.ranges())]
        sliced = emit.slice(op.operand, *zip(*ranges, strict=True))
        whole = [(0, size, 1) for size in shape_of(sliced)]
        ranges = [whole[dim] if dim in dims else each for dim, each in enumerate(op.ranges())]
        result = emit.slice(sliced, *zip(*ranges, strict=True))
        for value, like in ((sliced, op.operand), (result, op.result)):
            sharding = get_sharding(like)
            assert sharding is not None
            set_sharding(value, sharding)
        replace(op, [result])


def _slices_first(op: SliceOp) -> bool:
    operand, result = layout_of(op.operand), layout_of(op.result)
    if not operand.is_split or operand.axes != result.axes or 0 in (*operand.shape, *result.shape):
        return False
    moves = any(not ranges.is_identity for ranges in _ranges_by_dim(op).values())
    return moves and slices_before_exchange(op, _unsplit_dims(op))


def _unsplit_dims(op: PadOp | SliceOp) -> set[int]:
    layout = layout_of(op.operand)
    return {dim for dim in range(len(layout.shape)) if dim not in layout.split_dims}


def _resize(
    op: PadOp | SliceOp,
    filler: Filler | None,
    resize_unsplit_dims: Callable[[TensorEmitter, SSAValue, SSAValue], SSAValue],
    resolution: Resolution,
) -> bool:
    before, after = layout_of(op.operand), layout_of(op.result)
    sharding = before.sharding
    if sharding is None or after.sharding is None or before.axes != after.axes or 0 in (*before.shape, *after.shape):
        return False
    planner, ranges_by_dim = resolution.planner, _ranges_by_dim(op)
    exchanges = {dim: planner.exchange(ranges) for dim, ranges in ranges_by_dim.items() if not ranges.is_identity}
    if not exchanges or not (planner.trims_messages or any(plan.moves for plan in exchanges.values())):
        return True
    if not all(plan.pays for plan in exchanges.values()):
        return False
    filler = filler or zero_filler(op, op.operand)
    operand = pad_to(op, op.operand, before.padded_shape, filler, sharding)
    scalar = TensorSharding.replicated_open(sharding.mesh, 0)
    names = {axis.name for axes in before.axes for axis in axes}
    builder = ExchangeBuilder(op, [(operand, sharding), (filler.value, scalar)], names, resolution.devices(before.mesh))
    value, inner_filler = builder.arguments
    for dim, exchange in exchanges.items():
        value = DimExchange(builder, sharding, dim, Filler(inner_filler, filler.is_zero)).run(value, exchange)
    value = resize_unsplit_dims(builder.tensors(sharding), value, inner_filler)
    [result] = builder.finish([value], [after.padded_type()], [sharding])
    Rewriter.replace_op(op, [], [unpad(op, result, after.shape, sharding)])
    return True


def _pad_slice(conversion: PaddedConversion[SliceOp]) -> bool:
    """Extend the slice into the rows that follow in the padded operand, if there are enough.

    The stride of a single row has no effect; at most the size of a shard, it leads to a row of the next shard.
    """
    op, operand, result = conversion.op, conversion.operands[0], conversion.results[0]
    limits, strides = list(op.limit_indices.get_values()), list(op.strides.get_values())
    for dim in result.uneven_dims:
        if result.shape[dim] == 1:
            strides[dim] = min(strides[dim], max(1, operand.padded_shape[dim] // result.padded_shape[dim]))
        limits[dim] = op.start_indices.get_values()[dim] + (result.padded_shape[dim] - 1) * strides[dim] + 1
        if limits[dim] > operand.padded_shape[dim]:
            return False
    op.limit_indices, op.strides = i64_array(*limits), i64_array(*strides)
    return True


def _pad_pad(conversion: PaddedConversion[PadOp]) -> bool:
    """Pad the operand, and reduce the high padding accordingly.

    The padding of the operand takes the place of high padding, so that it must be filled with the padding value. Shardy
    fills it only if that reduces the high padding, which is neither necessary nor sufficient.
    """
    op, operand, result = conversion.op, conversion.operands[0], conversion.results[0]
    low, high, interior = (
        list(each.get_values()) for each in (op.edge_padding_low, op.edge_padding_high, op.interior_padding)
    )
    padded, padded_result = operand.padded_shape, result.padded_shape
    for dim in {*operand.uneven_dims, *result.uneven_dims}:
        step = interior[dim] + 1
        before, high[dim] = high[dim], padded_result[dim] - low[dim] - ((padded[dim] - 1) * step + 1)
        shows = dim in operand.uneven_dims and low[dim] + operand.shape[dim] * step < result.shape[dim]
        if shows if conversion.conversion.target.planner.preserves_semantics else high[dim] < before:
            conversion.fill(0, [dim], op.padding_value)
        elif shows:
            warn(
                op,
                f"'{op.name}' op exposes the padding of its operand along dimension {dim} in place of its own padding "
                "value; set preserve-semantics to mask it",
            )
    op.edge_padding_high = i64_array(*high)
    return True


@unless_empty
def _lower_slice(conversion: OpConversion[SliceOp]) -> None:
    """Lower a slice; if it begins at different offsets of the shards, slice its range dynamically, then stride it."""
    op, operand, emit = conversion.op, conversion.operands[0], conversion.before()
    shape, result, strides = shape_of(op.operand), shape_of(op.result), op.strides.get_values()
    firsts = _of_devices(
        operand,
        [
            [start + part * (after * stride - before) for part in range(operand.parts(dim))]
            for dim, (start, stride, before, after) in enumerate(
                zip(op.start_indices.get_values(), strides, shape, result, strict=True)
            )
        ],
    )
    extents = [(after - 1) * stride + 1 for after, stride in zip(result, strides, strict=True)]
    if all(len(set(of_dim)) == 1 for of_dim in firsts):
        starts = [of_dim[0] for of_dim in firsts]
        limits = [
            (before if limit == global_size else start + size) if axes else limit
            for global_size, axes, limit, before, start, size in zip(
                operand.shape, operand.axes, op.limit_indices.get_values(), shape, starts, extents, strict=True
            )
        ]
        conversion.replace(emit.slice(op.operand, starts, limits, strides))
        return
    run = emit.dynamic_slice(op.operand, [emit.of_device(of_dim) for of_dim in firsts], extents)
    conversion.replace(
        emit.slice(run, [0] * len(extents), extents, strides) if any(each > 1 for each in strides) else run
    )


@unless_empty
def _lower_pad(conversion: OpConversion[PadOp]) -> None:
    """Lower a pad; if shards need different amounts of padding, pad all by the maximum and slice the excess off."""
    op, operand, emit = conversion.op, conversion.operands[0], conversion.before()
    shape, result = shape_of(op.operand), shape_of(op.result)
    interior = op.interior_padding.get_values()
    lows = _of_devices(
        operand,
        [
            [low + part * (before * (between + 1) - after) for part in range(operand.parts(dim))]
            for dim, (low, between, before, after) in enumerate(
                zip(op.edge_padding_low.get_values(), interior, shape, result, strict=True)
            )
        ],
    )
    spread = [max(before - 1, 0) * between + before for before, between in zip(shape, interior, strict=True)]
    if all(len(set(of_dim)) == 1 for of_dim in lows):
        low = [of_dim[0] for of_dim in lows]
        high = [after - size - start for after, size, start in zip(result, spread, low, strict=True)]
        conversion.replace(emit.insert(PadOp(op.operand, op.padding_value, low, high, interior)))
        return
    low = [max(0, *of_dim) for of_dim in lows]
    high = [max(0, after - min(of_dim) - size) for after, of_dim, size in zip(result, lows, spread, strict=True)]
    padded = emit.insert(PadOp(op.operand, op.padding_value, low, high, interior))
    starts = [emit.of_device([most - each for each in of_dim]) for most, of_dim in zip(low, lows, strict=True)]
    conversion.replace(emit.dynamic_slice(padded, starts, result))


def _of_devices(layout: Layout, of_parts: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return, for each dimension, the number of each device's shard from the numbers of all shards."""
    return [
        [numbers[index] for index in shard_indices(axes, layout.mesh)]
        for axes, numbers in zip(layout.axes, of_parts, strict=True)
    ]


PARTITIONING: PartitioningTable = {
    PadOp: OperationPartitioning(_exchange_for_pad, _replicate, _pad_pad, _illegality, _lower_pad),
    SliceOp: OperationPartitioning(_exchange_for_slice, _replicate, _pad_slice, _illegality, _lower_slice),
}
