"""The operations of the SDY dialect that are no collectives."""

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
from sdy.passes.common.regions import inline_body
from sdy.passes.spmd.layout import Layout
from sdy.passes.spmd.operation_partitioning import OperationPartitioning, PartitioningTable
from sdy.passes.spmd.padded_site import PaddedSite
from sdy.passes.spmd.site import Site


def _lower_manual_computation(site: Site[ManualComputationOp]) -> None:
    """Inside, tensors have the types that they have outside on one device."""
    inline_body(site.op)


_LOWERING: dict[type[Operation], str] = {PropagationBarrierOp: "sdy-remove-propagation-barriers"}
"""The pass that replaces an operation which changes a layout, where it is not `sdy-reshard-to-collectives`."""


def _lower_to_operand(site: Site[Operation]) -> None:
    """Replace an operation that only names a layout by its operand, if that has the layout."""
    if site.operands[0].axes != site.results[0].axes:
        lowering = _LOWERING.get(type(site.op), "sdy-reshard-to-collectives")
        raise op_error(site.op, f"changes the sharding of a tensor: {lowering} must run first")
    site.replace(site.op.operands[0])


def _lower_sharding_group(site: Site[ShardingGroupOp]) -> None:
    site.replace()


def _pad_manual_computation(site: PaddedSite[ManualComputationOp]) -> bool:
    """Values are passed on, padded outside and inside alike."""
    if any(_splits_unevenly(site.op, layout) for layout in site.site.layouts):
        raise op_error(site.op, "has an operand or result with a non-divisible sharding")
    return True


def _splits_unevenly(op: ManualComputationOp, layout: Layout) -> bool:
    """Whether a dimension is uneven that manual axes split: the others are so inside as well, and are padded alike."""
    return any(axis.name in op.manual_axes.data for dim in layout.uneven_dims for axis in layout.axes[dim])


def _pad_alike(site: PaddedSite[Operation]) -> bool:
    """The result is padded as the operand is."""
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
