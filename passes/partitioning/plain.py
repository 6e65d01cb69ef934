"""`sdy-plain`: removal of the SDY dialect."""

from collections.abc import Callable

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from sdy import dialect
from sdy.diagnostics import op_error
from sdy.dialect.meshes import main_mesh, named_meshes
from sdy.ir.editing import inline_body
from sdy.ir.walking import operations, operations_of
from sdy.passes.common.argument_names import attribute_names, remove_from_arguments_and_results
from sdy.passes.gspmd.named_shardings import NUM_PARTITIONS
from sdy.passes.partitioning.inline_operators import inline_operators
from sdy.passes.spmd.emit.communication import groups_as_lists
from sdy.passes.spmd.local_module import is_local
from sdy.stablehlo.attributes.replica_group_meshes import axes_and_mesh
from sdy.stablehlo.attributes.replica_groups import ReplicaGroupMeshAxesAttr
from sdy.stablehlo.constants import ConstantOp, ReplicaIdOp

_PREFIX = "sdy."


class PlainPass(ModulePass):
    """Remove the SDY dialect from a module, for compilers that do not support it.

    A partitioned program becomes plain StableHLO, which every device runs: replica groups list device ids, and the
    module has the number of partitions. An unpartitioned program is unchanged but for its annotations, and a reshard is
    replaced by its operand. Calls of annotated operators are inlined.

    Before::

        sdy.mesh @mesh = <["x"=2]>
        func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
          %0 = stablehlo.negate %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
          return %0 : tensor<8xf32>
        }

    After::

        func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
          %0 = stablehlo.negate %arg0 : tensor<8xf32>
          return %0 : tensor<8xf32>
        }

    An operation that requires several devices, such as a manual computation, is an error: partition the program first.
    """

    name = "sdy-plain"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if is_local(op) and NUM_PARTITIONS not in op.attributes and not operations_of(op, ReplicaIdOp):
            op.attributes[NUM_PARTITIONS] = IntegerAttr(main_mesh(op).size, i32)
        drop_dialect(op)


def drop_dialect(module: ModuleOp, *kept: type[Operation]) -> None:
    """Remove the SDY dialect from `module` in place, except for operations of the classes `kept`.

    Raises:
        DiagnosticError: Another operation requires several devices, such as a manual computation.
    """
    inline_operators(module)
    meshes = named_meshes(module)
    for op in operations(module):
        if type(groups := op.properties.get("replica_groups")) is ReplicaGroupMeshAxesAttr:
            op.properties["replica_groups"] = groups_as_lists(*axes_and_mesh(groups, meshes))
        if type(op) is FuncOp:
            names = {name for name in attribute_names(op) if name.startswith(_PREFIX)}
            remove_from_arguments_and_results(op, names)
        if op.attributes:
            op.attributes = {name: value for name, value in op.attributes.items() if not name.startswith(_PREFIX)}
        if op.dialect_name() == "sdy" and op.parent is not None and type(op) not in kept:
            _REPLACE.get(type(op), _raise_unpartitioned)(op)


def _use_operand(op: Operation) -> None:
    Rewriter.replace_op(op, [], [op.operands[0]])


def _use_constant(op: Operation) -> None:
    assert isinstance(op, dialect.ConstantOp)
    Rewriter.replace_op(op, ConstantOp.create(result_types=op.result_types, properties={"value": op.value}))


def _raise_unpartitioned(op: Operation) -> None:
    raise op_error(op, "requires several devices: partition the program first")


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
