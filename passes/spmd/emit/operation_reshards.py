"""Insert the reshards and all-reduces around one operation that make its shardings compatible."""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from xdsl.ir import Operation, OpResult, Use
from xdsl.rewriter import InsertPoint

from sdy.axes import AxisRef, subtract
from sdy.diagnostics import op_error
from sdy.dialect.ops import ReshardOp
from sdy.dialect.shardings import get_sharding, result_shardings, set_sharding
from sdy.ir.editing import insert_for_other_uses, insert_for_use
from sdy.mesh import Mesh
from sdy.passes.common.manual_axes import ManualAxes
from sdy.passes.common.replication_cost import LocalBytes, current_shardings, warn_of_cost
from sdy.passes.spmd.emit.single_device import insert_single_device_reshards, runs_on_one_device
from sdy.passes.spmd.emit.unreduced import combine_operands, combine_results
from sdy.passes.spmd.plan.dot_plan import plan_dot_result
from sdy.passes.spmd.plan.operation_plan import OperationShardings, Tensors, summed_axes
from sdy.passes.spmd.plan.operator_parts import summed_axes_of_results
from sdy.passes.spmd.plan.planner import Planner
from sdy.passes.spmd.plan.refused_identifiers import (
    identifiers_cut_unevenly,
    refused_identifiers,
    warn_of_refused_identifiers,
)
from sdy.passes.spmd.plan.sharded_operation import ShardedOperation, Shardings, shardings_around
from sdy.rule import OpShardingRule
from sdy.rules import sharding_rule
from sdy.sharding import TensorSharding
from sdy.stablehlo.dot import DotGeneralOp, DotOp
from sdy.stablehlo.slicing import DynamicSliceOp

if TYPE_CHECKING:
    from sdy.operators.rules import OperatorRule

_DOTS = {DotOp, DotGeneralOp}


class OperationReshards(ABC):
    """Insertion of the reshards around the operations of one module.

    Most operations of a deep model repeat an earlier one, so compatible operations are memoized.
    """

    def __init__(self, planner: Planner, manual_axes: ManualAxes):
        self._planner = planner
        self._manual_axes = manual_axes
        self._compatible: defaultdict[tuple[type[Operation], Shardings], set[OpShardingRule]] = defaultdict(set)
        """Memo of operations that need no reshards: sharding rules by class and shardings."""

    def insert(self, op: Operation) -> None:
        """Reshard operands and results of `op` so that they are compatible, and all-reduce partial results."""
        shardings = shardings_around(op)
        rules = self._compatible.get((op.__class__, shardings))
        if rules and sharding_rule(op) in rules:
            return
        if any(sharding and sharding.unreduced for sharding in map(get_sharding, op.operands)):
            combine_operands(op)
            shardings = shardings_around(op)
        if runs_on_one_device(op, shardings[len(op.operands) :] or result_shardings(op)):
            insert_single_device_reshards(op)
        elif self._may_reshard(op, shardings) and (operation := ShardedOperation.of(op, shardings)) is not None:
            rule = self._planner.operation_rule(operation)
            if rule is not None:
                self._insert_around(operation, operation.tensors(rule))

    def _remember(self, operation: ShardedOperation) -> None:
        self._compatible[operation.op.__class__, operation.shardings].add(operation.rule)

    @abstractmethod
    def _may_reshard(self, op: Operation, shardings: Shardings) -> bool:
        """Return whether an operation with these shardings may get reshards or all-reduces."""

    @abstractmethod
    def _insert_around(self, operation: ShardedOperation, tensors: Tensors) -> None:
        """Insert the reshards and all-reduces around an operation."""


class AllReshards(OperationReshards):
    """Insertion of all reshards that make the shardings of an operation compatible."""

    def _may_reshard(self, op: Operation, shardings: Shardings) -> bool:
        return True

    def _insert_around(self, operation: ShardedOperation, tensors: Tensors) -> None:
        if operation.operator is not None:
            self._insert_around_operator(operation, operation.operator, tensors)
            return
        op, plan = operation.op, self._plan(operation, tensors)
        if _is_repeatable(operation) and not (any(plan.shardings) or plan.reduction_axes):
            self._remember(operation)
        before = current_shardings(op) if operation.is_opaque else ()
        reshard_around(op, plan.shardings)
        if operation.is_opaque:
            _warn_of_replication(op, plan, before, operation.mesh)
        combine_results(operation, [plan.reduction_axes] * len(op.results))

    def _insert_around_operator(self, operation: ShardedOperation, operator: "OperatorRule", tensors: Tensors) -> None:
        """Insert the reshards around a call of an annotated operator; identifiers that it refuses are replicated."""
        op, mesh, plan = operation.op, operation.mesh, self._plan(operation, tensors)
        refused = refused_identifiers(op, operator, plan.axes_per_factor, mesh)
        if refused:
            rule = tensors.rule.with_replicated([operator.factors[name] for name in refused])
            plan = self._plan(operation, replace(tensors, rule=rule))
        refused = {**identifiers_cut_unevenly(operator, operation.shardings, mesh), **refused}
        before = current_shardings(op)
        reshard_around(op, plan.shardings)
        if refused:
            warn_of_refused_identifiers(op, operator, refused, before)
        combine_results(operation, summed_axes_of_results(operator, plan.axes_per_factor))

    def _plan(self, operation: ShardedOperation, tensors: Tensors) -> OperationShardings:
        return self._planner.operation_plan(operation, tensors, self._manual_axes)


class MinimalReshards(OperationReshards):
    """Insertion of Shardy's minimum: reductions along unreduced axes, and reshards of the results of dot products.

    The result of a dot product is resharded where that is cheaper than to reshard its operands.
    """

    def _may_reshard(self, op: Operation, shardings: Shardings) -> bool:
        return op.__class__ in _DOTS or any(sharding and sharding.unreduced for sharding in shardings)

    def _insert_around(self, operation: ShardedOperation, tensors: Tensors) -> None:
        op, wanted = operation.op, operation.shardings[-1]
        partial_axes = _declared_reduction_axes(op, tensors, operation.mesh)
        if op.__class__ in _DOTS and wanted is not None:
            sharding = plan_dot_result(tensors, operation.mesh_name, operation.mesh)
            if sharding is not None:
                _compute_with(op.results[0], sharding, wanted, InsertPoint.after(op))
            elif operation.operator is None and not partial_axes:
                self._remember(operation)
        combine_results(operation, [partial_axes] * len(op.results))


def _is_repeatable(operation: ShardedOperation) -> bool:
    """Return whether the plan depends on the rule and the shardings only: not on regions, nor the loops around."""
    return not (operation.op.regions or operation.is_opaque or isinstance(operation.op, DynamicSliceOp))


def reshard_around(op: Operation, shardings: Sequence[TensorSharding | None]) -> bool:
    """Reshard the operands and results of `op` to `shardings`; return whether any reshard was inserted.

    Args:
        op: The operation.
        shardings: The shardings of the operands, then of the results; None keeps the present one.
    """
    if not any(shardings):
        return False
    before, after = InsertPoint.before(op), InsertPoint.after(op)
    for index, sharding in enumerate(shardings):
        if sharding is None:
            continue
        if index < len(op.operands):
            insert_for_use(Use(op, index), ReshardOp(op.operands[index], sharding), before)
        else:
            result = op.results[index - len(op.operands)]
            wanted = get_sharding(result) or TensorSharding.replicated_closed(sharding.mesh, sharding.rank)
            _compute_with(result, sharding, wanted, after)
    return True


def _compute_with(result: OpResult, sharding: TensorSharding, wanted: TensorSharding, at: InsertPoint) -> None:
    """Set the sharding of `result`, and insert a reshard to `wanted` for its users."""
    insert_for_other_uses(result, ReshardOp(result, wanted), at)
    set_sharding(result, sharding)


def _declared_reduction_axes(op: Operation, tensors: Tensors, mesh: Mesh) -> Sequence[AxisRef]:
    """Return the reduction axes of `op` if its results have unreduced axes, that is, if all-reduces are explicit.

    Raises:
        DiagnosticError: If the operands disagree on the axes of a reduction factor.
    """
    sharding = get_sharding(op.results[0]) if op.results else None
    if sharding is None or not sharding.unreduced:
        return ()
    axes = summed_axes(tensors, sharding.mesh, mesh)
    if axes is None:
        raise op_error(
            op,
            "has results with unreduced axes, but operands split over different axes along a reduced dimension",
        )
    return axes


def _warn_of_replication(
    op: Operation, plan: OperationShardings, shardings: Sequence[TensorSharding | None], mesh: Mesh
) -> None:
    """Warn that `op` is replicated along the axes that split its tensors before, in `shardings`, but not in `plan`."""
    kept = [axis for axes in plan.axes_per_factor for axis in axes]
    axes_before = [axis for sharding in shardings if sharding for axes in sharding.dim_axes for axis in axes]
    if lost := [str(axis) for axis in dict.fromkeys(subtract(axes_before, kept, mesh))]:
        where = f"along {', '.join(lost)}" if kept else "on every device"
        message = f"is replicated {where}: its sharding rule does not let these dimensions be split"
        warn_of_cost(op, message, LocalBytes.by(op, shardings), LocalBytes.by(op, current_shardings(op)))
