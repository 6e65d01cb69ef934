"""Making data flow explicit: an operation `sdy.data_flow_edge` after each value that owns an edge."""

from collections.abc import Sequence

from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from sdy.dialect.ops import DataFlowEdgeOp, FuncDataFlowEdgeOp
from sdy.dialect.shardings import get_sharding
from sdy.passes.common.tensors import is_static_tensor, rank
from sdy.sharding import TensorSharding


def add_edges(owners: Sequence[SSAValue]) -> None:
    """Put an edge with its owner's sharding after each of `owners` that is a tensor and has none yet."""
    for owner in reversed(owners):
        if is_static_tensor(owner.type) and edge_of(owner) is None:
            replace_other_uses(owner, DataFlowEdgeOp(owner, get_sharding(owner)))


def edge_of(owner: SSAValue) -> DataFlowEdgeOp | None:
    """The edge after `owner`, or None."""
    user = owner.get_user_of_unique_use()
    return user if isinstance(user, DataFlowEdgeOp) else None


def edge_shardings(owners: Sequence[SSAValue]) -> tuple[TensorSharding, ...] | None:
    """The sharding on the edge of each owner, open where there is none; None if no edge has a sharding."""
    edges = [edge_of(owner) for owner in owners]
    shardings = [edge.sharding.data if edge and edge.sharding else None for edge in edges]
    example = next((sharding for sharding in shardings if sharding is not None), None)
    if example is None:
        return None
    return tuple(
        sharding or TensorSharding.replicated_open(example.mesh, rank(owner.type))
        for sharding, owner in zip(shardings, owners, strict=True)
    )


def remove_edges(owners: Sequence[SSAValue]) -> None:
    """Take away the edges of `owners`."""
    for owner in owners:
        edge = edge_of(owner)
        if edge is not None:
            Rewriter.replace_op(edge, [], [owner])


def replace_other_uses(value: SSAValue, edge: DataFlowEdgeOp | FuncDataFlowEdgeOp) -> None:
    """Insert `edge`, an edge of `value`, right after it, and let all other uses of `value` go through it."""
    insert_after_value(value, edge)
    if isinstance(value, BlockArgument | OpResult):
        edge.location = value.location if isinstance(value, BlockArgument) else value.op.location
    value.replace_uses_with_if(edge.result, lambda use: use.operation is not edge)


def insert_after_value(value: SSAValue, operation: Operation) -> None:
    """Insert `operation` where `value` is first available: after its operation, or first in its block."""
    if isinstance(value, BlockArgument):
        Rewriter.insert_op(operation, InsertPoint.at_start(value.block))
    else:
        assert isinstance(value.owner, Operation)
        Rewriter.insert_op(operation, InsertPoint.after(value.owner))
