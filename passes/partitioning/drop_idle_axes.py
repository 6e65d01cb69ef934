"""`sdy-drop-idle-axes`: drop the axes of a dimension along which devices would hold only padding."""

from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from functools import lru_cache

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, OpResult, SSAValue

from sdy.axes import merge_sub_axes, total_size
from sdy.dialect.collectives import CollectiveOp
from sdy.dialect.interfaces import data_flow_of, defining_op
from sdy.dialect.meshes import mesh_of
from sdy.dialect.ops import ReshardOp
from sdy.dialect.shardings import get_sharding, set_sharding, shardable_value
from sdy.ir.editing import AnalysisPreservingPass
from sdy.ir.fast_access import type_of
from sdy.ir.shapes import is_static_tensor, shape
from sdy.ir.walking import operations, operations_of
from sdy.mesh import Mesh
from sdy.passes.spmd.plan.collective_state import prime_pieces
from sdy.rule import OpShardingRule
from sdy.rules import sharding_rule
from sdy.sharding import DimSharding
from sdy.stablehlo.shape import ConcatenateOp, ReshapeOp


class DropIdleAxesPass(AnalysisPreservingPass):
    """Replicate the rows of a dimension that has fewer rows than shards, instead of padding it.

    With "x" of size 8, devices 0 and 1 have one row each, and the other six hold only padding. Before::

        %0 = sdy.reshard %arg0 <@mesh, [{"x"}, {}]> : tensor<2x64xf32>
        %1 = stablehlo.negate %0 [{"x"}, {}] : tensor<2x64xf32>

    After, four devices have each row, and shards have the same size as before::

        %0 = sdy.reshard %arg0 <@mesh, [{"x":(1)2}, {}]> : tensor<2x64xf32>
        %1 = stablehlo.negate %0 [{"x":(1)2}, {}] : tensor<2x64xf32>

    The pass adds no communication: it changes a value only if no operand has these rows on fewer devices. Operands and
    results of operations that move rows, such as a slice, a reshape or a concatenation, are unchanged, as are function
    arguments and results, and modules with collectives.
    """

    name = "sdy-drop-idle-axes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if any(operations_of(op, CollectiveOp)):
            return
        # Most values share few types and shardings: each pair is checked once.
        holders = [*_holders(op)]
        examples = {(id(type_of(value)), get_sharding(value)): value for value in holders}
        if not any(map(_idle_dims, examples.values())):
            return
        idle = {value: dims - _moved_dims(value) for value in holders if (dims := _idle_dims(value))}
        is_settled = False
        while not is_settled:
            is_settled = True
            for value, dims in idle.items():
                kept = {dim for dim in dims if _comes_without_idle_axes(value, dim, idle)}
                is_settled = is_settled and kept == dims
                idle[value] = kept
        for value, dims in idle.items():
            _drop_axes(value, dims)


IdleDims = dict[SSAValue, set[int]]
"""The dimensions of each value whose idle axes the pass drops."""


def _holders(module: ModuleOp) -> Iterator[SSAValue]:
    """Yield the values whose shardings are stored at operations, which excludes function arguments."""
    for op in operations(module):
        if (flow := data_flow_of(op)) is not None:
            yield from flow.block_argument_edge_owners(op)
            yield from flow.result_edge_owners(op)
        else:
            yield from op.results


def _idle_dims(value: SSAValue) -> set[int]:
    """Return the dimensions with axes along which devices hold only padding."""
    sharding = get_sharding(value)
    if sharding is None or sharding.unreduced or sharding.is_fully_replicated or not is_static_tensor(value.type):
        return set()
    mesh = mesh_of(sharding, _op_of(value))
    pairs = zip(sharding.dims, shape(value.type), strict=True)
    return {dim for dim, (split, size) in enumerate(pairs) if _without_idle_axes(split, size, mesh) != split}


def _moved_dims(value: SSAValue) -> set[int]:
    """Return the dimensions along which users move rows between devices, whose operands need equal shardings."""
    moved = set[int]()
    for use in value.uses:
        if isinstance(use.operation, ReshapeOp):
            return set(range(len(shape(value.type))))
        if (rule := sharding_rule(use.operation)) is not None:
            factors = _moved_factors(use.operation, rule)
            moved |= {dim for dim, of_dim in enumerate(rule.operands[use.index]) if not factors.isdisjoint(of_dim)}
    return moved


def _moved_factors(op: Operation, rule: OpShardingRule) -> Set[int]:
    """Return the factors along which devices exchange rows."""
    is_joined = isinstance(op, ConcatenateOp)
    return {*rule.permutation, *rule.need_replication} if is_joined else set(rule.permutation)


def _drop_axes(value: SSAValue, dims: Set[int]) -> None:
    sharding = get_sharding(value)
    assert sharding is not None
    mesh, sizes = mesh_of(sharding, _op_of(value)), shape(value.type)
    for dim in dims:
        sharding = sharding.with_dim(dim, _without_idle_axes(sharding.dims[dim], sizes[dim], mesh))
    if dims:
        set_sharding(value, sharding)


@lru_cache(2**10)
def _without_idle_axes(split: DimSharding, size: int, mesh: Mesh) -> DimSharding:
    """Return the shortest prefix of the axes, split into sub-axes of prime size, with the same shard size."""
    if not size or size % split.sharded_size(mesh) == 0:
        return split
    rows = -(-size // split.sharded_size(mesh))
    pieces = [piece for axis in split.axes for piece in prime_pieces(axis, mesh)]
    for count in range(len(pieces)):
        if -(-size // total_size(pieces[:count], mesh)) == rows:
            return replace(split, axes=merge_sub_axes(pieces[:count], mesh))
    return split


def _comes_without_idle_axes(value: SSAValue, dim: int, dropped: IdleDims) -> bool:
    """Return whether no operand has the rows of `value` along `dim` on fewer devices."""
    sources = _sources(value, dim)
    return sources is not None and all(
        source_dim in dropped.get(holder, ()) or source_dim not in _idle_dims(source)
        for source, source_dim in sources
        if (holder := shardable_value(source)) is not None
    )


def _sources(value: SSAValue, dim: int) -> Sequence[tuple[SSAValue, int]] | None:
    """Return the operands that the rows of `value` along `dim` come from, with their dimension; None if rows move."""
    op = _op_of(value)
    if (flow := data_flow_of(op)) is not None:
        return [(use.operation.operands[use.index], dim) for use in flow.edge_sources(op, value)]
    if isinstance(op, ReshardOp):
        source = get_sharding(op.input)
        return [] if source is None or not source.dims or not source.dims[dim].axes else None
    rule = sharding_rule(op)
    if rule is None or rule.is_custom or not isinstance(value, OpResult) or isinstance(op, ReshapeOp):
        return None
    factors = set(rule.results[value.index][dim])
    if factors & _moved_factors(op, rule):
        return None
    return [
        (operand, index)
        for operand, mapping in zip(op.operands, rule.operands, strict=True)
        for index, of_dim in enumerate(mapping)
        if factors & set(of_dim)
    ]


def _op_of(value: SSAValue) -> Operation:
    op = defining_op(value)
    assert op is not None
    return op
