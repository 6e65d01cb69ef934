"""Explicit data-flow edges: an `sdy.data_flow_edge` after each value that owns an edge."""

from collections.abc import Sequence
from typing import cast

from xdsl.ir import SSAValue

from sdy.dialect.ops import DataFlowEdgeOp
from sdy.dialect.shardings import get_sharding
from sdy.ir.editing import after_value, insert_for_other_uses, replace
from sdy.ir.fast_access import next_use, user_of
from sdy.ir.shapes import is_static_tensor, rank
from sdy.sharding import TensorSharding


def add_edges(owners: Sequence[SSAValue]) -> None:
    """Insert an edge with its owner's sharding after each of `owners` that is a tensor without an edge."""
    for owner in reversed(owners):
        if is_static_tensor(owner.type) and edge_of(owner) is None:
            insert_for_other_uses(owner, DataFlowEdgeOp(owner, get_sharding(owner)), after_value(owner))


def edge_of(owner: SSAValue) -> DataFlowEdgeOp | None:
    """Return the edge after `owner`, or None."""
    use = owner.first_use
    # Called for many values, few of them with an edge; `isinstance` is slow when the answer is no.
    if use is None or user_of(use).__class__ is not DataFlowEdgeOp or next_use(use) is not None:
        return None
    return cast(DataFlowEdgeOp, user_of(use))


def edge_shardings(owners: Sequence[SSAValue]) -> tuple[TensorSharding, ...] | None:
    """Return the sharding on the edge of each owner, replicated and open by default; None if no edge has a sharding."""
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
    """Remove the edges of `owners`."""
    for owner in owners:
        edge = edge_of(owner)
        if edge is not None:
            replace(edge, [owner])
