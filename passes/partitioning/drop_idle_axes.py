"""`sdy-drop-idle-axes`: drop the axes of a dimension along which devices would hold only padding."""

from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from functools import lru_cache

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, OpResult, SSAValue

from sdy.axes import AxisRef, merge_sub_axes, subtract, total_size
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
from sdy.passes.spmd.reshard.collective_state import prime_pieces
from sdy.rule import OpShardingRule
from sdy.rules import sharding_rule
from sdy.sharding import DimSharding, TensorSharding
from sdy.stablehlo.shape import ConcatenateOp, ReshapeOp


class DropIdleAxesPass(AnalysisPreservingPass):
    """Replicate the rows of a dimension that has fewer rows than shards, instead of padding it.

    With "x" of size 8, devices 0 and 1 have one row each, and the other six hold only padding. Before::

        %0 = sdy.reshard %arg0 <@mesh, [{"x"}, {}]> : tensor<2x64xf32>
        %1 = stablehlo.negate %0 [{"x"}, {}] : tensor<2x64xf32>

    After, four devices have each row, and shards have the same size as before::

        %0 = sdy.reshard %arg0 <@mesh, [{"x":(1)2}, {}]> : tensor<2x64xf32>
        %1 = stablehlo.negate %0 [{"x":(1)2}, {}] : tensor<2x64xf32>

    Row 1 is on device 1 before, and on devices 4 to 7 after. So the pass changes a value only together with the values
    that its rows come from and go to, and only if its operands are not sharded along the dropped axes. It then adds no
    communication. Operands of one operation change together. Operands and results of operations that move rows, such as
    a slice or a concatenation, are unchanged, as are dimensions that a reshape splits or merges, function arguments and
    results, and modules with collectives.
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
        idle = {value: dims for value in holders if (dims := _idle_dims(value))}
        sources = {(value, dim): _sources(value, dim) for value, dims in idle.items() for dim in dims}
        aligned = [*_aligned_operands(op)]
        dropped = {value: dims - _moved_dims(value) for value, dims in idle.items()}
        is_settled = False
        while not is_settled:
            is_settled = True
            for (value, dim), places in sources.items():
                if dim in dropped[value] and _comes_without_idle_axes(value, dim, places, dropped):
                    continue
                split = [place for place in places or () if not _is_on_all_after(*place)]
                kept = {(value, dim), *((shardable_value(source), source_dim) for source, source_dim in split)}
                for holder, kept_dim in kept:
                    if holder is not None and kept_dim in dropped.get(holder, ()):
                        dropped[holder].remove(kept_dim)
                        is_settled = False
            for places in aligned:
                kept = [(value, dim) for value, dim in places if dim not in dropped.get(value, ())]
                if 0 < len(kept) < len(places):
                    is_settled = False
                    for value, dim in places:
                        dropped.get(value, set[int]()).discard(dim)
        for value, dims in dropped.items():
            if dims:
                set_sharding(value, _without_idle_dims(value, dims))


DroppedDims = dict[SSAValue, set[int]]
"""The dimensions of each value whose idle axes the pass drops."""

Place = tuple[SSAValue, int]
"""A dimension of a value."""


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
        if (rule := sharding_rule(use.operation)) is None:
            continue
        mapping = rule.operands[use.index]
        if isinstance(use.operation, ReshapeOp):
            moved |= {dim for dim, of_dim in enumerate(mapping) if of_dim not in rule.results[0]}
        else:
            factors = _moved_factors(use.operation, rule)
            moved |= {dim for dim, of_dim in enumerate(mapping) if not factors.isdisjoint(of_dim)}
    return moved


def _aligned_operands(module: ModuleOp) -> Iterator[list[Place]]:
    """Yield the dimensions with idle axes of operands that share a factor, which an operation needs split alike."""
    for op in operations(module):
        rule = sharding_rule(op) if len(op.operands) > 1 and data_flow_of(op) is None else None
        if rule is None:
            continue
        places: dict[int, list[Place]] = {}
        for operand, mapping in zip(op.operands, rule.operands, strict=True):
            if (holder := shardable_value(operand)) is None:
                continue
            for dim in _idle_dims(holder):
                if len(mapping[dim]) == 1:
                    places.setdefault(mapping[dim][0], []).append((holder, dim))
        yield from places.values()


def _moved_factors(op: Operation, rule: OpShardingRule) -> Set[int]:
    """Return the factors along which devices exchange rows."""
    is_joined = isinstance(op, ConcatenateOp)
    return {*rule.permutation, *rule.need_replication} if is_joined else set(rule.permutation)


def _without_idle_dims(value: SSAValue, dims: Set[int]) -> TensorSharding:
    """Return the sharding of `value` without the idle axes of `dims`."""
    sharding = get_sharding(value)
    assert sharding is not None
    mesh, sizes = mesh_of(sharding, _op_of(value)), shape(value.type)
    for dim in dims:
        sharding = sharding.with_dim(dim, _without_idle_axes(sharding.dims[dim], sizes[dim], mesh))
    return sharding


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


def _is_on_all_after(value: SSAValue, dim: int) -> bool:
    """Return whether dimension `dim` is whole on each device without its idle axes, so that a slice of it is free."""
    return dim in _idle_dims(value) and not _without_idle_dims(value, {dim}).dims[dim].axes


def _comes_without_idle_axes(value: SSAValue, dim: int, sources: Sequence[Place] | None, dropped: DroppedDims) -> bool:
    """Return whether no operand has the rows of `value` along `dim` on fewer devices, or is split over idle axes."""
    if sources is None or not all(
        source_dim in dropped.get(holder, ()) or source_dim not in _idle_dims(source)
        for source, source_dim in sources
        if (holder := shardable_value(source)) is not None
    ):
        return False
    sharding = get_sharding(value)
    assert sharding is not None
    mesh = mesh_of(sharding, _op_of(value))
    lost = subtract(sharding.dims[dim].axes, _without_idle_dims(value, {dim}).dims[dim].axes, mesh)
    return not any(used.overlaps(axis) for used in _axes_of_operands(value, sources, dropped) for axis in lost)


def _axes_of_operands(value: SSAValue, sources: Sequence[Place], dropped: DroppedDims) -> Iterator[AxisRef]:
    """Yield the axes that shard the operands of `value` after the pass, except along reduced dimensions."""
    op = _op_of(value)
    is_edge = data_flow_of(op) is not None
    operands = [source for source, _ in sources] if is_edge else op.operands
    rule = None if is_edge else sharding_rule(op)
    for index, operand in enumerate(operands):
        sharding = _sharding_after(operand, dropped)
        for dim, axes in enumerate(sharding.dim_axes if sharding is not None else ()):
            if rule is None or not set(rule.operands[index][dim]) <= set(rule.reduction):
                yield from axes


def _sharding_after(value: SSAValue, dropped: DroppedDims) -> TensorSharding | None:
    """Return the sharding of `value` after the pass."""
    sharding, holder = get_sharding(value), shardable_value(value)
    dims = dropped.get(holder, set[int]()) if holder is not None else set[int]()
    return _without_idle_dims(value, dims) if dims else sharding


def _sources(value: SSAValue, dim: int) -> Sequence[Place] | None:
    """Return the operands that the rows of `value` along `dim` come from, with their dimension; None if rows move."""
    op = _op_of(value)
    if (flow := data_flow_of(op)) is not None:
        return [(use.operation.operands[use.index], dim) for use in flow.edge_sources(op, value)]
    if isinstance(op, ReshardOp):
        return _sources_of_reshard(op, dim)
    rule = sharding_rule(op)
    if rule is None or rule.is_custom or not isinstance(value, OpResult):
        return None
    if isinstance(op, ReshapeOp) and _is_replicated(get_sharding(op.operand)):
        return []
    if isinstance(op, ReshapeOp):
        of_dim = rule.results[0][dim]
        return [(op.operand, rule.operands[0].index(of_dim))] if of_dim in rule.operands[0] else None
    factors = set(rule.results[value.index][dim])
    if factors & _moved_factors(op, rule):
        return None
    return [
        (operand, index)
        for operand, mapping in zip(op.operands, rule.operands, strict=True)
        for index, of_dim in enumerate(mapping)
        if factors & set(of_dim)
    ]


def _sources_of_reshard(op: ReshardOp, dim: int) -> Sequence[Place] | None:
    """Return the input if the reshard keeps the axes of dimension `dim`, () if it adds them; None if rows move."""
    source = get_sharding(op.input)
    if source is None or not source.dims or not source.dims[dim].axes:
        return ()
    return [(op.input, dim)] if source.dims[dim].axes == op.sharding.data.dims[dim].axes else None


def _is_replicated(sharding: TensorSharding | None) -> bool:
    return sharding is None or sharding.is_fully_replicated


def _op_of(value: SSAValue) -> Operation:
    op = defining_op(value)
    assert op is not None
    return op
