"""Compatibility of shardings: whether each device can compute its shard of an operation without communication."""

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache
from typing import Any

from xdsl.ir import Operation, OpResult, SSAValue

from sdy.axes import Axes, AxisRef, subtract
from sdy.dialect import AllGatherOp, AllReduceOp, AllSliceOp, ManualComputationOp, ReduceScatterOp
from sdy.factors import project
from sdy.ir.fast_access import is_terminator
from sdy.mesh import Mesh
from sdy.passes.spmd.emit.illegality import Illegality, Reason
from sdy.passes.spmd.plan.common_sharding import agreed_axes
from sdy.passes.spmd.plan.special_rules import rule_by_elements
from sdy.passes.spmd.shards.layout import Layout
from sdy.rule import FactorKind, OpShardingRule, TensorMapping, factors_in
from sdy.sharding import DimSharding, TensorSharding
from sdy.stablehlo.collectives import CollectivePermuteOp
from sdy.stablehlo.padding import PadOp
from sdy.stablehlo.shape import ConcatenateOp
from sdy.stablehlo.slicing import DynamicSliceOp, SliceOp

_CHANGES_PADDING = (AllGatherOp, AllSliceOp, CollectivePermuteOp, DynamicSliceOp, PadOp, SliceOp)
"""Operations that, like concatenations, add or remove padding, or exchange rows when the padding changes."""


def illegality_by_rule(
    op: Operation,
    operands: Sequence[Layout],
    results: Sequence[Layout],
    also_whole: Callable[[Any, OpShardingRule], Collection[int]] = lambda op, rule: (),
) -> Illegality | None:
    """Return why, by the sharding rule of `op`, its shards cannot be computed without communication; None if they can.

    They can if all tensors have the same axes for each factor of the rule, no factor that must be replicated is
    sharded, and collectives combine the partial results. Without a rule, only an operation of another dialect without
    results can be partitioned: it receives the shards of its operands.

    Args:
        op: The operation, with unpartitioned types.
        operands: The layouts of the operands.
        results: The layouts of the results.
        also_whole: Returns factors that must be replicated, in addition to those that the rule says.
    """
    layouts = (*operands, *results)
    mesh = _common_mesh(layouts)
    if mesh is None:
        return Illegality(Reason.DIFFERENT_MESHES)
    rule = rule_by_elements(op)
    if rule is None:
        return Illegality(Reason.NO_RULE) if results or op.dialect_name() == "stablehlo" else None
    axes = _axes_of_factors(rule, tuple(layout.axes for layout in layouts), mesh)
    if isinstance(axes, Reason):
        return Illegality(axes)
    if any(axes[factor] for factor in (*_factors_to_replicate(rule), *also_whole(op, rule))):
        return Illegality(Reason.DATA_OF_OTHERS)
    partial = [axis for factor in rule.reduction for axis in axes[factor]]
    if partial and not all(_is_combined(*each, partial, mesh) for each in zip(op.results, results, strict=True)):
        return Illegality(Reason.UNCOMBINED_PARTIALS)
    return None


def illegality_by_dims(
    operands: Sequence[Layout],
    results: Sequence[Layout],
    stays: Callable[[int, int, Sequence[int]], bool],
    reason: Reason = Reason.DATA_OF_OTHERS_ALONG_DIM,
) -> Illegality | None:
    """Return why an operation that maps dimension i to dimension i cannot be computed shard by shard; None if it can.

    It can if all tensors have the same axes in each dimension, and each shard of the result depends on the same shard
    of the operands only. Tensors of a rank other than that of the first are ignored.

    Args:
        operands: The layouts of the operands.
        results: The layouts of the results.
        stays: Returns whether a dimension needs no data of other devices, by its index, its number of shards and its
            shard sizes in all tensors, operands first.
        reason: The reason if `stays` returns False.
    """
    layouts = (*operands, *results)
    if _common_mesh(layouts) is None:
        return Illegality(Reason.DIFFERENT_MESHES)
    tensors = [layout for layout in layouts if len(layout.shape) == len(layouts[0].shape)]
    for dim, axes in enumerate(layouts[0].axes):
        if any(layout.axes[dim] != axes for layout in tensors):
            return Illegality(Reason.INCOMPATIBLE_DIM, dim)
        parts = layouts[0].parts(dim)
        if parts > 1 and not stays(dim, parts, [layout.shape[dim] // parts for layout in tensors]):
            return Illegality(reason, dim)
    return None


def _common_mesh(layouts: Sequence[Layout]) -> Mesh | None:
    """Return the mesh of all sharded tensors, None if they have several."""
    meshes = [layout.mesh for layout in layouts if layout.is_split]
    return meshes[0] if all(mesh == meshes[0] for mesh in meshes) else None


@lru_cache(maxsize=2**12)
def _axes_of_factors(
    rule: OpShardingRule, axes_of_tensors: Sequence[Sequence[Axes]], mesh: Mesh
) -> tuple[Axes, ...] | Reason:
    """Return the axes of each factor, which all tensors agree on, or the reason why they do not agree."""
    shardings = [TensorSharding(mesh, tuple(map(DimSharding, axes))) for axes in axes_of_tensors]
    tensors = project(rule, shardings, mesh).tensors
    without_factor = any(map(_split_without_factor, axes_of_tensors, rule.tensors))
    if without_factor or any(factor.overflow for tensor in tensors for factor in tensor.factors.values()):
        return Reason.UNSPLITTABLE_DIM
    agreed = agreed_axes([{index: part.axes for index, part in tensor.factors.items()} for tensor in tensors], rule)
    return Reason.INCOMPATIBLE_SHARDINGS if agreed is None else agreed


def _split_without_factor(axes_of_dims: Sequence[Axes], dims: TensorMapping) -> bool:
    return any(axes and not factors for axes, factors in zip(axes_of_dims, dims, strict=True))


@lru_cache(maxsize=2**12)
def _factors_to_replicate(rule: OpShardingRule) -> frozenset[int]:
    """Return the factors that must be replicated: permutation factors, and pass-through factors of operands only."""
    goes_in, comes_out = factors_in(rule.operands), factors_in(rule.results)
    goes_in_only = {factor for factor in goes_in - comes_out if rule.kind(factor) is FactorKind.PASS_THROUGH}
    return frozenset(rule.permutation) | goes_in_only


def created_factors(rule: OpShardingRule) -> frozenset[int]:
    """Return the factors of the results that no operand has."""
    return frozenset(factors_in(rule.results) - factors_in(rule.operands))


def _is_combined(result: OpResult, layout: Layout, axes: Sequence[AxisRef], mesh: Mesh) -> bool:
    """Return whether partial results along `axes` are declared unreduced, or combined by collectives before any use."""
    rest = subtract(axes, layout.sharding.unreduced, mesh) if layout.sharding is not None else axes
    return not rest or all(_combines(user, rest, mesh) for user in users_behind_padding(result))


def users_behind_padding(value: SSAValue) -> Iterator[Operation]:
    """Yield the users of `value`, looking through operations that pad, slice or forward it."""
    for use in value.uses:
        if isinstance(use.operation, ConcatenateOp) or (use.index == 0 and isinstance(use.operation, _CHANGES_PADDING)):
            yield from users_behind_padding(use.operation.results[0])
        elif isinstance(use.operation, ManualComputationOp):
            yield from users_behind_padding(use.operation.body.block.args[use.index])
        elif isinstance(computation := use.operation.parent_op(), ManualComputationOp) and is_terminator(use.operation):
            yield from users_behind_padding(computation.outputs[use.index])
        else:
            yield use.operation


def _combines(op: Operation, axes: Sequence[AxisRef], mesh: Mesh) -> bool:
    if not isinstance(op, (AllReduceOp, ReduceScatterOp)):
        return False
    remaining = subtract(axes, combined_axes(op), mesh)
    return not remaining or all(_combines(user, remaining, mesh) for user in users_behind_padding(op.result))


def combined_axes(op: AllReduceOp | ReduceScatterOp) -> list[AxisRef]:
    """Return the axes along which a collective reduces."""
    if isinstance(op, AllReduceOp):
        return list(op.reduction_axes.data)
    return [axis for axes in op.reduce_scatter_axes.data for axis in axes]
