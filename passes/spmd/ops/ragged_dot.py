"""Ragged dot products: each device has the part of each group that is in its shard of the ragged dimension."""

from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from sdy.ir.shapes import shape_of
from sdy.passes.spmd.emit.device_shards import offsets
from sdy.passes.spmd.emit.op_conversion import OpConversion, PaddedConversion
from sdy.passes.spmd.emit.operation_partitioning import OperationPartitioning, PartitioningTable
from sdy.rule import FactorKind
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.chlo.ragged_dot import RaggedDotOp
from sdy.stablehlo.elementwise import AddOp, SubtractOp
from sdy.stablehlo.emitter import Emitter


def _lower(conversion: OpConversion[RaggedDotOp]) -> None:
    """Replace the group sizes by those of the device's part of the ragged dimension."""
    op, lhs = conversion.op, conversion.operands[0]
    (ragged,) = op.ragged_dot_dimension_numbers.data.lhs_ragged_dimensions
    axes = lhs.axes[ragged]
    if not axes or ragged in op.ragged_dot_dimension_numbers.data.lhs_batching_dimensions:
        return
    size = shape_of(op.lhs)[ragged]
    emit = conversion.before()
    ends = _running_sums(emit, op.group_sizes)
    shape, element_type = shape_of(ends), tensor_type(ends).element_type
    start = emit.convert(emit.of_device(offsets(axes, size, lhs.mesh)), element_type)
    scalar = emit.broadcast(start, (), shape)
    low, high = (emit.broadcast(emit.filled(tensor_type(start), each), (), shape) for each in (0, size))
    ends = emit.clamp(low, emit.binary(SubtractOp, ends, scalar), high)
    before = [0] * len(shape)
    last = len(shape) - 1
    starts = emit.concatenate(
        [
            emit.slice(low, before, [*shape[:last], 1]),
            emit.slice(ends, before, [*shape[:last], shape[last] - 1]),
        ],
        last,
    )
    op.operands[2] = emit.binary(SubtractOp, ends, starts)


def _running_sums(emit: Emitter, values: SSAValue) -> SSAValue:
    """Return the sums of the elements up to each one along the last dimension."""
    *outer, count = shape_of(values)
    square = [*outer, count, count]
    last = len(outer)
    rows = [int(column <= row) for row in range(count) for column in range(count)]
    is_before = emit.broadcast(emit.integers(rows, (count, count), i1), (last, last + 1), square)
    zero = emit.filled(tensor_type(values), 0)
    each, zeros = (emit.broadcast(value, (*range(last), last + 1), square) for value in (values, zero))
    return emit.reduce(emit.select(is_before, each, zeros), (last + 1,), AddOp, 0)


def _pad(conversion: PaddedConversion[RaggedDotOp]) -> bool:
    """Fill the padding of both factors along contracting dimensions with zeros; rows beyond all groups are zero."""
    if not conversion.carries(FactorKind.REDUCTION):
        return False
    for operand in (0, 1):
        conversion.fill(operand, conversion.reduced_dims(operand), 0)
    return True


PARTITIONING: PartitioningTable = {RaggedDotOp: OperationPartitioning(pad=_pad, lower=_lower)}
