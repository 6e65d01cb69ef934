"""A module for another compiler: without anything of the SDY dialect, or with all that it says but its symbols."""

from collections.abc import Callable

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.rewriter import Rewriter

from sdy import dialect
from sdy.diagnostics import op_error
from sdy.dialect.meshes import named_meshes
from sdy.ir.walking import operations
from sdy.passes.common.inline_meshes import InlineMeshesPass
from sdy.passes.common.regions import inline_body
from sdy.passes.partitioning.inline_operators import InlineOperatorsPass
from sdy.passes.spmd.replica_groups import groups_as_lists
from sdy.stablehlo.attributes.replica_groups import ReplicaGroupMeshAxesAttr
from sdy.stablehlo.constants import ConstantOp
from sdy.stablehlo.replica_group_meshes import axes_and_mesh
from sdy.text import context


def without_shardings(module: ModuleOp, *kept: type[Operation]) -> ModuleOp:
    """A copy of `module` from which `drop_shardings` has taken what it takes."""
    module = module.clone()
    drop_shardings(module, *kept)
    return module


def drop_shardings(module: ModuleOp, *kept: type[Operation]) -> None:
    """Take meshes, shardings and the operations that only concern them out of `module`, in place.

    Calls of annotated operators are what these do. What is left computes the same on whole tensors: there a reshard or
    a collective is its operand. Groups of devices that lie along the axes of a mesh are listed. Operations of the
    classes `kept` stay. Raises DiagnosticError at another one that only has a meaning on several devices.
    """
    InlineOperatorsPass().apply(context(), module)
    meshes = named_meshes(module)
    for op in operations(module):
        if isinstance(groups := op.properties.get("replica_groups"), ReplicaGroupMeshAxesAttr):
            op.properties["replica_groups"] = groups_as_lists(*axes_and_mesh(groups, meshes))
        if isinstance(op, FuncOp):
            op.arg_attrs = op.res_attrs = None
        op.attributes = {name: value for name, value in op.attributes.items() if not name.startswith("sdy.")}
        if op.dialect_name() == "sdy" and op.parent is not None and type(op) not in kept:
            _REPLACE.get(type(op), _refuse)(op)


def for_xla(module: ModuleOp) -> ModuleOp:
    """A copy of `module` that can be put into another one: its meshes stand where they are used.

    The arguments and results of its functions have no shardings, which the caller's have.
    """
    module = module.clone()
    InlineMeshesPass().apply(context(), module)
    for op in module.ops:
        if isinstance(op, FuncOp):
            op.arg_attrs = op.res_attrs = None
    return module


def _use_operand(op: Operation) -> None:
    Rewriter.replace_op(op, [], [op.operands[0]])


def _use_constant(op: Operation) -> None:
    assert isinstance(op, dialect.ConstantOp)
    Rewriter.replace_op(op, ConstantOp.create(result_types=op.result_types, properties={"value": op.value}))


def _refuse(op: Operation) -> None:
    raise op_error(op, "has no meaning on whole tensors")


_REPLACE: dict[type[Operation], Callable[[Operation], None]] = {
    dialect.MeshOp: Rewriter.erase_op,
    dialect.ShardingGroupOp: Rewriter.erase_op,
    dialect.ConstantOp: _use_constant,
    dialect.NamedComputationOp: inline_body,
    **dict.fromkeys(
        (
            dialect.ShardingConstraintOp,
            dialect.ReshardOp,
            dialect.PropagationBarrierOp,
            dialect.DataFlowEdgeOp,
            dialect.FuncDataFlowEdgeOp,
            dialect.AllGatherOp,
            dialect.AllReduceOp,
            dialect.AllSliceOp,
            dialect.AllToAllOp,
            dialect.CollectivePermuteOp,
            dialect.ReduceScatterOp,
            dialect.ReplicatedToUnreducedOp,
            dialect.ShardedToUnreducedOp,
        ),
        _use_operand,
    ),
}
