"""Making data flow explicit: an operation `sdy.data_flow_edge` after each value that owns an edge."""

from collections.abc import Sequence
from typing import cast

from xdsl.ir import SSAValue

from sdy.dialect.ops import DataFlowEdgeOp
from sdy.dialect.shardings import get_sharding
from sdy.ir.editing import after_value, insert_for_other_uses, replace
from sdy.ir.fields import next_use, user_of
from sdy.ir.shapes import is_static_tensor, rank
from sdy.sharding import TensorSharding


def add_edges(owners: Sequence[SSAValue]) -> None:
    """Put an edge with its owner's sharding after each of `owners` that is a tensor and has none yet."""
    for owner in reversed(owners):
        if is_static_tensor(owner.type) and edge_of(owner) is None:
            insert_for_other_uses(owner, DataFlowEdgeOp(owner, get_sharding(owner)), after_value(owner))


def edge_of(owner: SSAValue) -> DataFlowEdgeOp | None:
    """The edge after `owner`, or None."""
    use = owner.first_use
    # Asked about many values, few of which have an edge: isinstance would be slow to say so.
    if use is None or user_of(use).__class__ is not DataFlowEdgeOp or next_use(use) is not None:
        return None
    return cast(DataFlowEdgeOp, user_of(use))


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
            replace(edge, [owner])
