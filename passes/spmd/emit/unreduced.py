"""Insert the collectives that combine partial results, or add unreduced axes, along which values are partial."""

from collections.abc import Sequence

from xdsl.ir import Operation, OpResult, SSAValue, Use
from xdsl.rewriter import InsertPoint

from sdy.axes import AxisRef, subtract
from sdy.diagnostics import error, op_error
from sdy.dialect.collectives import AllReduceOp, ReplicatedToUnreducedOp, ShardedToUnreducedOp
from sdy.dialect.meshes import mesh_of
from sdy.dialect.ops import ReshardOp
from sdy.dialect.shardings import get_sharding
from sdy.ir.editing import insert_for_other_uses, insert_for_use, used_value
from sdy.ir.shapes import rank
from sdy.mesh import Mesh
from sdy.passes.spmd.plan.sharded_operation import ShardedOperation
from sdy.passes.spmd.plan.unreduced_plan import (
    AllReduce,
    ReplicatedToUnreduced,
    Reshard,
    UnreductionStep,
    in_mesh_order,
    plan_reduction,
    plan_unreduction,
)
from sdy.sharding import TensorSharding


def combine_for_use(use: Use, target: TensorSharding | None, at: InsertPoint) -> None:
    """Insert an all-reduce over the unreduced axes of the used value that `target` does not have.

    Raises:
        DiagnosticError: If the two shardings are on different meshes.
    """
    source = get_sharding(used_value(use))
    if source is not None and source.unreduced:
        step = plan_reduction(source, target, _one_mesh(use, source, target))
        if step is not None:
            insert_for_use(use, _operation(step, used_value(use), source), at)


def combine_operands(op: Operation) -> None:
    """All-reduce the operands along the unreduced axes that the results do not have.

    Raises:
        DiagnosticError: If `op` has no results, or results with different unreduced axes.
    """
    if not op.results:
        raise op_error(op, "has operands with unreduced axes, but no results")
    results = [get_sharding(result) for result in op.results]
    if len({sharding.unreduced if sharding else () for sharding in results}) > 1:
        raise op_error(op, "has results with different unreduced axes")
    for index in range(len(op.operands)):
        combine_for_use(Use(op, index), results[0], InsertPoint.before(op))


def combine_results(operation: ShardedOperation, axes_of_results: Sequence[Sequence[AxisRef]]) -> None:
    """Insert an all-reduce of each result over the axes along which it is partial, except for its unreduced axes."""
    if operation.reduction is None or not any(axes_of_results):
        return
    op, mesh = operation.op, operation.mesh
    first = get_sharding(op.results[0])
    unreduced = first.unreduced if first else ()
    at = InsertPoint.after(op)
    for result, axes in zip(op.results, axes_of_results, strict=True):
        partial = in_mesh_order(subtract(axes, unreduced, mesh), mesh)
        if partial and not _is_combined(result, partial):
            sharding = get_sharding(result) or TensorSharding.replicated_closed(operation.mesh_name, rank(result.type))
            insert_for_other_uses(result, AllReduceOp(result, partial, sharding, operation.reduction), at)


def unreduce_for_use(use: Use, target: TensorSharding | None, at: InsertPoint) -> bool:
    """Bring the used value to `target` if that has unreduced axes that the value lacks.

    Returns:
        Whether operations were inserted.

    Raises:
        DiagnosticError: If the two shardings are on different meshes, or each has unreduced axes that the other lacks.
    """
    source = get_sharding(used_value(use))
    if source is None or target is None or not target.unreduced:
        return False
    try:
        steps = plan_unreduction(source, target, _one_mesh(use, source, target))
    except ValueError as problem:
        raise error(use.operation, f"operand #{use.index}: {problem}") from problem
    for step in steps:
        insert_for_use(use, _operation(step, used_value(use), source), at)
    return bool(steps)


def _is_combined(result: OpResult, axes: Sequence[AxisRef]) -> bool:
    """Return whether all users of `result` are all-reduces over `axes`, inserted by an earlier pass."""
    users = [use.operation for use in result.uses]
    return bool(users) and all(
        isinstance(user, AllReduceOp) and tuple(user.reduction_axes.data) == tuple(axes) for user in users
    )


def _one_mesh(use: Use, source: TensorSharding, target: TensorSharding | None) -> Mesh:
    mesh = mesh_of(source, use.operation)
    if target is not None and mesh_of(target, use.operation) != mesh:
        raise error(use.operation, f"operand #{use.index} has unreduced axes, but its use is sharded on another mesh")
    return mesh


def _operation(step: UnreductionStep, value: SSAValue, source: TensorSharding) -> Operation:
    match step:
        case AllReduce(axes, after):
            return AllReduceOp(value, axes, after, source.reduction)
        case Reshard(after):
            return ReshardOp(value, after)
        case ReplicatedToUnreduced(axes, after):
            return ReplicatedToUnreducedOp(value, axes, after)
        case _:
            return ShardedToUnreducedOp(value, step.axes, step.after)
