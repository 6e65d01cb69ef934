"""`sdy-insert-explicit-reshards`: insert reshards between incompatible shardings."""

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.ir import BlockArgument, Operation, Use
from xdsl.rewriter import InsertPoint

from sdy.dialect.collectives import CollectiveOp
from sdy.dialect.interfaces import ShardableDataFlow, data_flow_of
from sdy.dialect.meshes import mesh_of
from sdy.dialect.ops import ReshardOp
from sdy.dialect.shardings import func_result_sharding, get_sharding
from sdy.ir.editing import AnalysisPreservingPass, after_value, insert_for_use, replace, used_value
from sdy.ir.fast_access import is_terminator
from sdy.ir.shapes import rank
from sdy.ir.walking import operations_inside_out, operations_of
from sdy.passes.common.call_graph import callee, functions
from sdy.passes.common.function_shardings import function_argument_shardings
from sdy.passes.common.manual_axes import ManualAxes
from sdy.passes.common.sharding_walk import shardings_in
from sdy.passes.common.symbols import Symbols
from sdy.passes.spmd import planner_of
from sdy.passes.spmd.emit.operation_reshards import AllReshards, MinimalReshards, OperationReshards
from sdy.passes.spmd.emit.single_device import is_on_one_device, refuse_single_device
from sdy.passes.spmd.emit.unreduced import combine_for_use, unreduce_for_use
from sdy.passes.spmd.plan.planner import Planner
from sdy.rules.registry import name_of
from sdy.sharding import TensorSharding, equivalent
from sdy.stablehlo.dot import DotGeneralOp, DotOp
from sdy.stablehlo.shape import ConcatenateOp


@dataclass(frozen=True)
class InsertExplicitReshardsPass(AnalysisPreservingPass):
    """Insert reshards so that the shardings of each operation's operands and results are compatible.

    Shardings are compatible if they shard each factor of the operation along the same axes, and no axis shards two
    factors. If a reduction factor is sharded, the results are partial sums, which an inserted all-reduce combines.

    Before::

        sdy.mesh @mesh = <["x"=4, "y"=2]>
        ... %lhs: tensor<32x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}
        ... %rhs: tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}
        %0 = stablehlo.dot %lhs, %rhs {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}

    After, if `enable_full_version`::

        %0 = sdy.reshard %rhs <@mesh, [{"y"}, {}]> : tensor<32x16xf32>
        %1 = stablehlo.dot %lhs, %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}
        %2 = sdy.all_reduce {"y"} %1 out_sharding=<@mesh, [{"x"}, {}]>

    Without `enable_full_version`, only a few kinds of operations get all of their reshards. For others the pass inserts
    the reductions of unreduced axes, and reshards the result of a dot product if that is cheaper than to reshard its
    operands.

    The compatible shardings are Shardy's, or with `least_communication` others that send less. Operations with custom
    rules are otherwise not resharded; with `least_communication` they are sharded along their pass-through factors and
    replicated along the others, with a warning.
    """

    name = "sdy-insert-explicit-reshards"
    enable_full_version: bool = False
    """Insert all reshards, for all operations."""
    least_communication: bool = False
    """Choose compatible shardings that minimize communication, rather than Shardy's."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        symbols, planner, manual_axes = Symbols(op), planner_of(self.least_communication), ManualAxes(op)
        in_full = _Insertion(symbols, planner, AllReshards(planner, manual_axes), _reshard_use)
        minimal = _Insertion(symbols, planner, MinimalReshards(planner, manual_axes), _reduce_use)
        default = in_full if self.enable_full_version else minimal
        special = any(sharding.unreduced or is_on_one_device(sharding, op) for sharding in shardings_in(op))
        for function in functions(op):
            refuse_single_device(function)
            # Collect the operations first: inserted operations need no visit.
            if self.enable_full_version or special:
                visited = operations_inside_out(function)[:-1]
            else:
                visited = operations_of(function, *_NEVER_LEFT_ALONE)
            for inner in visited:
                if not is_terminator(inner):
                    (in_full if default is in_full or _always_in_full(inner) else default).visit(inner)
            terminator = function.body.block.last_op
            assert terminator is not None
            for index in range(len(terminator.operands)):
                target = func_result_sharding(function, index)
                default.reshard_use(Use(terminator, index), target, InsertPoint.before(terminator))


_NEVER_LEFT_ALONE = (func.CallOp, ConcatenateOp, DotOp, DotGeneralOp, UnregisteredOp)
"""Operations that may get reshards in a module without unreduced axes or single-device shardings, even without
`enable_full_version`."""


def _always_in_full(op: Operation) -> bool:
    """Return whether `op` gets all of its reshards even without `enable_full_version`."""
    if op.__class__ is func.CallOp:
        # Calls of one function with different shardings would otherwise need copies of it.
        return True
    if op.__class__ is ConcatenateOp:
        return any(get_sharding(operand) != get_sharding(op.results[0]) for operand in op.operands)
    return name_of(op) == "mhlo.ragged_dot"


@dataclass(frozen=True)
class _Insertion:
    """Insertion of the reshards of single operations: all of them, or Shardy's minimum."""

    symbols: Symbols
    planner: Planner
    operations: OperationReshards
    reshard_use: Callable[[Use, TensorSharding | None, InsertPoint], None]
    """Inserts the reshard of one use to a sharding; None is the replicated sharding."""

    def visit(self, op: Operation) -> None:
        """Insert the reshards of one operation."""
        if flow := data_flow_of(op):
            self._visit_data_flow(op, flow)
        elif type(op) is func.CallOp:
            self._visit_call(op)
        elif isinstance(op, ReshardOp) and unreduce_for_use(Use(op, 0), op.sharding.data, InsertPoint.before(op)):
            replace(op, (op.input,))
        elif not isinstance(op, CollectiveOp):  # a collective is itself a reshard
            self.operations.insert(op)

    def _visit_data_flow(self, op: Operation, flow: ShardableDataFlow) -> None:
        """Reshard the sources of each data-flow edge to the sharding of the edge's owner."""
        owners = [*flow.result_edge_owners(op), *flow.block_argument_edge_owners(op)]
        shardings = [*flow.result_edge_owner_shardings(op), *flow.block_argument_edge_owner_shardings(op)]
        for owner, sharding in zip(owners, shardings, strict=True):
            if sharding is not None:
                to_source_side = flow.outside_sharding if isinstance(owner, BlockArgument) else flow.inside_sharding
                sharding = to_source_side(op, owner, sharding)
            for source in flow.edge_sources(op, owner):
                self.reshard_use(source, sharding, self.planner.reshard_point(source))

    def _visit_call(self, call: func.CallOp) -> None:
        """Reshard the operands to the shardings of the function's arguments."""
        targets = function_argument_shardings(callee(call, self.symbols))
        if targets is None:
            shardings = [get_sharding(operand) for operand in call.operands]
            partitioned = [sharding for sharding in shardings if sharding and not mesh_of(sharding, call).is_maximal]
            if not partitioned:
                return
            mesh = partitioned[0].mesh
            targets = tuple(TensorSharding.replicated_closed(mesh, rank(operand.type)) for operand in call.operands)
        for index, target in enumerate(targets):
            self.reshard_use(Use(call, index), target, after_value(call.operands[index]))


def _reduce_use(use: Use, target: TensorSharding | None, at: InsertPoint) -> None:
    """Reduce or add unreduced axes of the used value, as `target` has them."""
    combine_for_use(use, target, at)
    unreduce_for_use(use, target, at)


def _reshard_use(use: Use, target: TensorSharding | None, at: InsertPoint) -> None:
    """Reshard the used value to `target`."""
    combine_for_use(use, target, at)
    if unreduce_for_use(use, target, at):
        return
    source = get_sharding(used_value(use))
    if source is None and target is not None and not target.is_fully_replicated:
        insert_for_use(use, ReshardOp(used_value(use), target), at)
    elif source is not None and not equivalent(source, target):
        target = target or TensorSharding.replicated_closed(source.mesh, source.rank)
        insert_for_use(use, ReshardOp(used_value(use), target), at)
