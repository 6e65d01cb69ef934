"""`sdy-apply-sharding-constraints`: copy the sharding of a constraint to its input."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Operation, SSAValue, Use

from sdy.dialect.attributes import SHARDING_RULE, OpShardingRuleAttr
from sdy.dialect.ops import DataFlowEdgeOp, ManualComputationOp, ShardingConstraintOp
from sdy.dialect.shardings import data_flow_edge_of, get_sharding, set_sharding, shardable_value
from sdy.ir.editing import AnalysisPreservingPass, after_value, insert
from sdy.ir.shapes import rank
from sdy.ir.walking import innermost_first, invalidate, operations_of
from sdy.passes.propagation.moves import Move
from sdy.passes.propagation.provenance.debug_info import DebugInfo
from sdy.passes.propagation.provenance.history import history_of
from sdy.rules import sharding_rule
from sdy.sharding import TensorSharding


@dataclass(frozen=True)
class ApplyShardingConstraintsPass(AnalysisPreservingPass):
    """Copy the sharding of a constraint to its input, unless the input has another sharding or constraint.

    Before::

        %0 = stablehlo.add %arg0, %arg1 : tensor<8xf32>
        %1 = sdy.sharding_constraint %0 <@mesh, [{"x"}]> : tensor<8xf32>

    After::

        %0 = stablehlo.add %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
        %1 = sdy.sharding_constraint %0 <@mesh, [{"x"}]> : tensor<8xf32>

    A constraint applies if its input has no sharding, or an empty open one such as `[{?}, {?}]`; if the constraint is
    closed in all dimensions; and if the input has no other constraint that differs. The `in_shardings` of a manual
    computation are constraints on its operands. Propagation alone would give the input the same axes, but could add
    others.

    If the input is a target of a data-flow edge, its sharding would also constrain the edge's other targets: the pass
    replaces the uses of the input by the constraint instead. If an input without other constraints begins a chain of
    constraints, its uses after the chain are replaced by the end of the chain.
    """

    name = "sdy-apply-sharding-constraints"
    debug_sharding_origins: bool = False
    """Record in the module from which of the user's shardings each axis comes."""
    debug_propagation_edge_sharding: bool = False
    """Record in the module which step propagated each axis, and along which edge."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        debug_info = DebugInfo(op, self.debug_sharding_origins, self.debug_propagation_edge_sharding)
        applied = history_of(op).applied
        for operation in innermost_first(operations_of(op, ShardingConstraintOp, ManualComputationOp)):
            match operation:
                case ShardingConstraintOp():
                    _use_end_of_chain(operation)
                    if _apply(operation.input, operation.sharding.data, lambda op=operation: _move_up(op)):
                        applied[operation.input] = operation
                        _keep_rule(operation)
                        _record(operation, debug_info)
                case ManualComputationOp():
                    shardings = operation.in_shardings.data
                    for value, sharding in zip(tuple(operation.operands), shardings, strict=True):
                        if _apply(value, sharding, lambda v=value, s=sharding, op=operation: _constrain(v, s, op)):
                            applied[value] = operation
        debug_info.write()


def _apply(value: SSAValue, sharding: TensorSharding, constraint_after: Callable[[], ShardingConstraintOp]) -> bool:
    """Apply `sharding` to `value` if the conditions hold.

    Args:
        value: The constrained value.
        sharding: The sharding of the constraint.
        constraint_after: Inserts a constraint after `value`, to replace its uses if it has a data-flow edge.

    Returns:
        Whether the sharding of `value` itself was set.
    """
    if not _should_apply(value, sharding):
        return False
    if not isinstance(value.owner, DataFlowEdgeOp) and data_flow_edge_of(value) is None:
        set_sharding(value, sharding)
        return True
    constraint = constraint_after()
    value.replace_uses_with_if(constraint.result, lambda use: use.operation is not constraint)
    if sharding.unreduced:
        # Unreduced axes do not propagate from the constraint to its input.
        current = get_sharding(value) or TensorSharding.replicated_open(sharding.mesh, rank(value.type))
        set_sharding(value, replace(current, unreduced=sharding.unreduced, reduction=sharding.reduction))
    return False


def _keep_rule(constraint: ShardingConstraintOp) -> None:
    """Attach the sharding rule of the constraint, as propagation does for each operation that it visits."""
    rule = sharding_rule(constraint)
    if rule is not None:
        constraint.attributes[SHARDING_RULE] = OpShardingRuleAttr(rule)


def _record(constraint: ShardingConstraintOp, debug_info: DebugInfo) -> None:
    """Record the moves of axes from the constraint to its input."""
    dims = constraint.sharding.data.dims
    moves = [Move(axis, source=1, target=0, factor=dim) for dim in range(len(dims)) for axis in dims[dim].axes]
    debug_info.add(constraint, 1, [[constraint.input], [constraint.result]], moves)


def _should_apply(value: SSAValue, sharding: TensorSharding) -> bool:
    return (
        shardable_value(value) is not None
        and not _is_sharded(value)
        and sharding.is_fully_closed
        and all(other == sharding for other in map(_constraint_by, value.uses) if other is not None)
    )


def _is_sharded(value: SSAValue) -> bool:
    sharding = get_sharding(value)
    return sharding is not None and not sharding.is_unconstrained


def _constraint_by(use: Use) -> TensorSharding | None:
    """Return the sharding that `use` constrains its value to; None if it is no constraint."""
    match use.operation:
        case ShardingConstraintOp():
            return use.operation.sharding.data
        case ManualComputationOp():
            return use.operation.in_shardings.data[use.index]
        case _:
            return None


def _move_up(constraint: ShardingConstraintOp) -> ShardingConstraintOp:
    invalidate(constraint)
    constraint.detach()
    insert(constraint, after_value(constraint.input))
    return constraint


def _constrain(value: SSAValue, sharding: TensorSharding, computation: ManualComputationOp) -> ShardingConstraintOp:
    constraint = ShardingConstraintOp(value, sharding)
    constraint.location = computation.location
    insert(constraint, after_value(value))
    return constraint


def _use_end_of_chain(head: ShardingConstraintOp) -> None:
    """If `head` begins a chain of constraints, replace the uses of its input after the chain by the chain's end."""
    tail = _end_of_chain(head)
    if tail is None:
        return

    def comes_after(use: Use) -> bool:
        user = use.operation
        return user is not head and not isinstance(user, ReturnOp) and tail.is_before_in_block(user)

    head.input.replace_uses_with_if(tail.result, comes_after)


def _end_of_chain(head: ShardingConstraintOp) -> ShardingConstraintOp | None:
    value = head.input
    if isinstance(value.owner, ShardingConstraintOp) or _is_sharded(value) or _is_constrained(value, except_by=head):
        return None
    tail = head
    while isinstance(next_in_chain := tail.result.get_user_of_unique_use(), ShardingConstraintOp):
        tail = next_in_chain
    return None if tail is head or _is_constrained(tail.result) else tail


def _is_constrained(value: SSAValue, except_by: Operation | None = None) -> bool:
    return any(use.operation is not except_by and _constraint_by(use) is not None for use in value.uses)
