"""Insert the collectives that remove or add unreduced axes of a value at one of its uses."""

from xdsl.ir import Operation, SSAValue, Use
from xdsl.rewriter import InsertPoint

from sdy.diagnostics import error
from sdy.dialect.collectives import AllReduceOp, ReplicatedToUnreducedOp, ShardedToUnreducedOp
from sdy.dialect.meshes import mesh_of
from sdy.dialect.ops import ReshardOp
from sdy.dialect.shardings import get_sharding
from sdy.ir.editing import insert_for_use, used_value
from sdy.mesh import Mesh
from sdy.passes.spmd.plan.unreduced_plan import (
    AllReduce,
    ReplicatedToUnreduced,
    Reshard,
    UnreductionStep,
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
