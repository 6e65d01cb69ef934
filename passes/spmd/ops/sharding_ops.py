"""Operations of the SDY dialect other than collectives."""

from xdsl.ir import Operation

from sdy.diagnostics import op_error
from sdy.dialect import (
    DataFlowEdgeOp,
    ManualComputationOp,
    PropagationBarrierOp,
    ReshardOp,
    ShardingConstraintOp,
    ShardingGroupOp,
)
from sdy.ir.editing import inline_body
from sdy.passes.spmd.emit.op_conversion import OpConversion, PaddedConversion
from sdy.passes.spmd.emit.operation_partitioning import OperationPartitioning, PartitioningTable
from sdy.passes.spmd.shards.layout import Layout


def _lower_manual_computation(conversion: OpConversion[ManualComputationOp]) -> None:
    """Inline the body: tensors have the same local types inside and outside."""
    inline_body(conversion.op)


_LOWERING: dict[type[Operation], str] = {PropagationBarrierOp: "sdy-remove-propagation-barriers"}
"""The pass that must replace an operation that changes a sharding; by default `sdy-reshard-to-collectives`."""


def _lower_to_operand(conversion: OpConversion[Operation]) -> None:
    """Replace an operation that only annotates a sharding by its operand, which must have that sharding."""
    if conversion.operands[0].axes != conversion.results[0].axes:
        lowering = _LOWERING.get(type(conversion.op), "sdy-reshard-to-collectives")
        raise op_error(conversion.op, f"changes the sharding of a tensor: {lowering} must run first")
    conversion.replace(conversion.op.operands[0])


def _lower_sharding_group(conversion: OpConversion[ShardingGroupOp]) -> None:
    conversion.replace()


def _pad_manual_computation(conversion: PaddedConversion[ManualComputationOp]) -> bool:
    """Pad values inside and outside alike, unless manual axes split a dimension unevenly."""
    if any(_splits_unevenly(conversion.op, layout) for layout in conversion.conversion.layouts):
        raise op_error(conversion.op, "has an operand or result with a non-divisible sharding")
    return True


def _splits_unevenly(op: ManualComputationOp, layout: Layout) -> bool:
    """Return whether manual axes split an uneven dimension; other uneven dimensions are padded inside as well."""
    return any(axis.name in op.manual_axes.data for dim in layout.uneven_dims for axis in layout.axes[dim])


def _pad_alike(conversion: PaddedConversion[Operation]) -> bool:
    """Pad the result like the operand."""
    return True


_TO_OPERAND = OperationPartitioning(pad=_pad_alike, lower=_lower_to_operand, always_lowered=True)

PARTITIONING: PartitioningTable = {
    DataFlowEdgeOp: _TO_OPERAND,
    ManualComputationOp: OperationPartitioning(
        pad=_pad_manual_computation, lower=_lower_manual_computation, always_lowered=True
    ),
    PropagationBarrierOp: _TO_OPERAND,
    ReshardOp: _TO_OPERAND,
    ShardingConstraintOp: _TO_OPERAND,
    ShardingGroupOp: OperationPartitioning(pad=_pad_alike, lower=_lower_sharding_group, always_lowered=True),
}
