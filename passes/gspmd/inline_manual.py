"""Inlining of manual computations, between custom calls that convert to and from local shapes."""

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint

from sdy.dialect.ops import ManualComputationOp
from sdy.ir.editing import inline_body, insert
from sdy.ir.walking import invalidate
from sdy.passes.gspmd.export_shardings import ExportedShardings, custom_call, open_dims_text
from sdy.passes.gspmd.sharding_texts import FULL_TO_SHARD, SHARD_TO_FULL, SHARDING_CALL
from sdy.stablehlo.custom_call import CustomCallOp


def inline_manual_computation(computation: ManualComputationOp, exported: ExportedShardings) -> None:
    """Replace `computation` by its body, between `SPMDFullToShardShape` and `SPMDShardToFullShape` calls."""
    block = computation.body.block
    local_values: list[SSAValue] = []
    for value, sharding, argument in zip(computation.tensors, computation.in_shardings.data, block.args, strict=True):
        constraint = exported.constraint(value, sharding, computation)
        text = exported.text_inside(argument.type, computation)
        config = open_dims_text(sharding)
        local = custom_call(FULL_TO_SHARD, constraint.results[0], argument.type, text, config)
        _insert_before(computation, [constraint, local])
        local_values.append(local.results[0])
    terminator = block.last_op
    assert terminator is not None
    full_values: list[SSAValue] = []
    for value, sharding, result in zip(
        terminator.operands, computation.out_shardings.data, computation.outputs, strict=True
    ):
        config = open_dims_text(sharding)
        inside = custom_call(SHARDING_CALL, value, value.type, exported.text_inside(value.type, computation), config)
        text = exported.text(sharding.close(), computation)
        full = custom_call(SHARD_TO_FULL, inside.results[0], result.type, text, config)
        _insert_before(terminator, [inside, full])
        full_values.append(full.results[0])
    computation.operands, terminator.operands = local_values, full_values
    inline_body(computation)
    invalidate()


def _insert_before(op: Operation, calls: Sequence[CustomCallOp]) -> None:
    for call in calls:
        call.location = op.location
        insert(call, InsertPoint.before(op))
