"""A module without anything of the SDY dialect, for a compiler that is to run it as it stands."""

from collections.abc import Callable

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint, Rewriter

from sdy.diagnostics import op_error
from sdy.dialect import ops as sdy_ops
from sdy.stablehlo.constants import ConstantOp


def without_shardings(module: ModuleOp) -> ModuleOp:
    """A copy of `module` in which meshes, shardings and the operations that only concern them are gone.

    What is left computes the same on whole tensors: there a reshard or a collective is its operand. Raises
    DiagnosticError at an operation that only has a meaning on several devices.
    """
    module = module.clone()
    for op in list(module.walk()):
        if isinstance(op, FuncOp):
            op.arg_attrs = op.res_attrs = None
        op.attributes = {name: value for name, value in op.attributes.items() if not name.startswith(("sdy.", "mhlo."))}
        if op.dialect_name() == "sdy" and op.parent is not None:
            _REPLACE.get(type(op), _refuse)(op)
    return module


def _use_operand(op: Operation) -> None:
    Rewriter.replace_op(op, [], [op.operands[0]])


def _use_constant(op: Operation) -> None:
    assert isinstance(op, sdy_ops.ConstantOp)
    Rewriter.replace_op(op, ConstantOp.create(result_types=op.result_types, properties={"value": op.value}))


def _inline(op: Operation) -> None:
    body = op.regions[0].block
    end = body.last_op
    assert end is not None
    results = list(end.operands)
    Rewriter.erase_op(end)
    arguments = list(op.operands)
    Rewriter.inline_block(body, InsertPoint.before(op), arguments)
    results = [arguments[body.args.index(value)] if value in body.args else value for value in results]
    Rewriter.replace_op(op, [], results)


def _refuse(op: Operation) -> None:
    raise op_error(op, "has no meaning on whole tensors")


_REPLACE: dict[type[Operation], Callable[[Operation], None]] = {
    sdy_ops.MeshOp: Rewriter.erase_op,
    sdy_ops.ShardingGroupOp: Rewriter.erase_op,
    sdy_ops.ConstantOp: _use_constant,
    sdy_ops.NamedComputationOp: _inline,
    **dict.fromkeys(
        (
            sdy_ops.ShardingConstraintOp,
            sdy_ops.ReshardOp,
            sdy_ops.PropagationBarrierOp,
            sdy_ops.AllGatherOp,
            sdy_ops.AllReduceOp,
            sdy_ops.AllSliceOp,
            sdy_ops.AllToAllOp,
            sdy_ops.CollectivePermuteOp,
            sdy_ops.ReduceScatterOp,
            sdy_ops.ReplicatedToUnreducedOp,
            sdy_ops.ShardedToUnreducedOp,
        ),
        _use_operand,
    ),
}
