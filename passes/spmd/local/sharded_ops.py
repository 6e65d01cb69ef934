"""The operations of the SDY dialect that are no collectives."""

from sdy.diagnostics import op_error
from sdy.dialect import (
    DataFlowEdgeOp,
    ManualComputationOp,
    PropagationBarrierOp,
    ReplicatedToUnreducedOp,
    ReshardOp,
    ShardedToUnreducedOp,
    ShardingConstraintOp,
    ShardingGroupOp,
)
from sdy.passes.common.regions import inline_body
from sdy.passes.spmd.parts import offsets, on_leader
from sdy.passes.spmd.site import Lowerings, Site
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.slicing import DynamicUpdateSliceOp

SHARDED_OPS = Lowerings()


@SHARDED_OPS.of(ManualComputationOp)
def _manual_computation(site: Site[ManualComputationOp]) -> None:
    """Inside, tensors have the types that they have outside on one device."""
    inline_body(site.op)


@SHARDED_OPS.of(DataFlowEdgeOp, PropagationBarrierOp, ReshardOp, ShardingConstraintOp)
def _same_layout(site: Site[ReshardOp]) -> None:
    """What only says a layout is its operand, if that has the layout."""
    if site.operands[0].axes != site.results[0].axes:
        raise op_error(site.op, "changes the sharding of a tensor: sdy-reshard-to-collectives must run first")
    site.replace(site.op.operands[0])


@SHARDED_OPS.of(ShardingGroupOp)
def _sharding_group(site: Site[ShardingGroupOp]) -> None:
    site.replace()


@SHARDED_OPS.of(ReplicatedToUnreducedOp)
def _replicated_to_unreduced(site: Site[ReplicatedToUnreducedOp]) -> None:
    op = site.op
    site.replace(on_leader(site.before(), op.tensor, 0, op.axes.data, site.results[0].mesh))


@SHARDED_OPS.of(ShardedToUnreducedOp)
def _sharded_to_unreduced(site: Site[ShardedToUnreducedOp]) -> None:
    """Each device's part stays in its place, among zeros."""
    op, emit, mesh = site.op, site.before(), site.results[0].mesh
    zeros = emit.filled(tensor_type(op.result), 0)
    shape = tensor_type(op.tensor).get_shape()
    starts = [emit.of_device(offsets(axes, size, mesh)) for axes, size in zip(op.axes.data, shape, strict=True)]
    update = DynamicUpdateSliceOp.create(operands=[zeros, op.tensor, *starts], result_types=[zeros.type])
    site.replace(emit.insert(update))
