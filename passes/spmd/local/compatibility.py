"""Whether an operation can be computed in parts, each device using its own parts of the operands only."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import cast

from xdsl.ir import Operation, OpResult, SSAValue

from sdy.axes import AxisRef, subtract
from sdy.device_groups import shard_indices
from sdy.dialect import AllGatherOp, AllReduceOp, AllSliceOp, ManualComputationOp, ReduceScatterOp
from sdy.factors import project
from sdy.ir.traits import is_terminator
from sdy.mesh import Mesh
from sdy.passes.spmd.layout import Layout
from sdy.passes.spmd.local.shifts import STAYS, why_not_shifted_in_parts
from sdy.passes.spmd.reshards.common_sharding import agreed_axes
from sdy.passes.spmd.reshards.scattered_elements import rule_by_elements
from sdy.rule import FactorKind, OpShardingRule, TensorMapping, factors_in
from sdy.sharding import DimSharding, TensorSharding
from sdy.stablehlo.collectives import CollectivePermuteOp
from sdy.stablehlo.convolution import ConvolutionOp
from sdy.stablehlo.custom_call import CustomCallOp
from sdy.stablehlo.padding import PadOp
from sdy.stablehlo.shape import ConcatenateOp, ReshapeOp, ReverseOp
from sdy.stablehlo.slicing import DynamicSliceOp, SliceOp

MISFIT = "its tensors are split in ways that do not fit together"
"""The reason that sdy-insert-explicit-reshards does away with."""

Axes = tuple[AxisRef, ...]

_CHANGES_PADDING = (AllGatherOp, AllSliceOp, CollectivePermuteOp, DynamicSliceOp, PadOp, SliceOp)
"""With concatenations, what padding is put on and taken off by, and what exchanges rows where parts change with it."""


def why_not_in_parts(op: Operation, operands: Sequence[Layout], results: Sequence[Layout]) -> str | None:
    """Why `op`, whose values still have the types of the whole, cannot be computed in parts; None if it can.

    It can where all its tensors split each factor of its sharding rule alike, factors that are needed whole or whose
    parts need data of other devices are not split, and what is partial as a consequence is combined. What is of another
    dialect and has no results looks at what the device has.
    """
    layouts = (*operands, *results)
    split = [layout for layout in layouts if layout.is_split]
    if not split:
        return None
    if isinstance(op, ReverseOp) and _reverses_parts(op, operands[0], results[0]):
        return None
    if isinstance(op, CollectivePermuteOp) and _permutes_like_parts(op, operands[0], results[0]):
        return None
    mesh = split[0].mesh
    if any(layout.mesh != mesh for layout in split):
        return "its tensors are split over different meshes"
    if type(op) in STAYS:
        return why_not_shifted_in_parts(op, layouts)
    rule = rule_by_elements(op)
    if rule is None:
        return "it has no sharding rule" if results or op.dialect_name() == "stablehlo" else None
    axes = _axes_of_factors(rule, tuple(layout.axes for layout in layouts), mesh)
    if isinstance(axes, str):
        return axes
    needed_whole = _factors_needed_whole(type(op), rule)
    if isinstance(op, ConvolutionOp):
        needed_whole |= _window_factors(op, rule)
    if any(axes[factor] for factor in needed_whole):
        return "a device would need data of others"
    partial = [axis for factor in rule.reduction for axis in axes[factor]]
    if partial and not all(_is_combined(*each, partial, mesh) for each in zip(op.results, results, strict=True)):
        return "nothing combines the partial results"
    return None


def _reverses_parts(op: ReverseOp, operand: Layout, result: Layout) -> bool:
    """Whether each device's part of the result is, reversed, its part of the operand."""
    reversed_dims = op.dimensions.get_values()
    return operand.mesh.axes == result.mesh.axes and all(
        shard_indices(after, result.mesh)
        == [
            operand.parts(dim) - 1 - index if dim in reversed_dims else index
            for index in shard_indices(before, operand.mesh)
        ]
        for dim, (before, after) in enumerate(zip(operand.axes, result.axes, strict=True))
    )


def _permutes_like_parts(op: CollectivePermuteOp, operand: Layout, result: Layout) -> bool:
    """Whether each device sends to one that has the same part."""
    numbers = cast(Sequence[int], op.source_target_pairs.get_values())
    parts = [shard_indices(axes, operand.mesh) for axes in operand.axes]
    return operand.axes == result.axes and all(
        part[source] == part[target]
        for source, target in zip(numbers[::2], numbers[1::2], strict=True)
        for part in parts
    )


@lru_cache(maxsize=2**12)
def _axes_of_factors(
    rule: OpShardingRule, axes_of_tensors: Sequence[Sequence[Axes]], mesh: Mesh
) -> tuple[Axes, ...] | str:
    """The axes that split each factor in all tensors alike, or why there are none."""
    shardings = [TensorSharding(mesh, tuple(map(DimSharding, axes))) for axes in axes_of_tensors]
    tensors = project(rule, shardings, mesh).tensors
    without_factor = any(map(_split_without_factor, axes_of_tensors, rule.tensors))
    if without_factor or any(factor.overflow for tensor in tensors for factor in tensor.factors.values()):
        return "a dimension is split where the operation does not allow it"
    agreed = agreed_axes([{index: part.axes for index, part in tensor.factors.items()} for tensor in tensors], rule)
    return MISFIT if agreed is None else agreed


def _split_without_factor(axes_of_dims: Sequence[Axes], dims: TensorMapping) -> bool:
    return any(axes and not factors for axes, factors in zip(axes_of_dims, dims, strict=True))


@lru_cache(maxsize=2**12)
def _factors_needed_whole(op_class: type[Operation], rule: OpShardingRule) -> frozenset[int]:
    """The factors that take data of other devices, go in but not out, or come out of what does not make them."""
    goes_in, comes_out = factors_in(rule.operands), factors_in(rule.results)
    goes_in_only = {factor for factor in goes_in - comes_out if rule.kind(factor) is FactorKind.PASS_THROUGH}
    comes_from_nowhere = (
        comes_out - goes_in if issubclass(op_class, ConvolutionOp | CustomCallOp | ReshapeOp) else set[int]()
    )
    return frozenset(rule.permutation) | goes_in_only | comes_from_nowhere


def _window_factors(op: ConvolutionOp, rule: OpShardingRule) -> set[int]:
    kernel = rule.operands[1]
    return {factor for dim in op.dimension_numbers.data.kernel_spatial_dimensions for factor in kernel[dim]}


def _is_combined(result: OpResult, layout: Layout, axes: Sequence[AxisRef], mesh: Mesh) -> bool:
    """Whether what is partial along `axes` is meant to be, or is combined by collectives before it is used."""
    rest = subtract(axes, layout.sharding.unreduced, mesh) if layout.sharding is not None else axes
    return not rest or all(_combines(user, rest, mesh) for user in users_behind_padding(result))


def users_behind_padding(value: SSAValue) -> Iterator[Operation]:
    """The users of `value`, behind what only gives it the padding that they need, takes it off, or passes it on."""
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
    """The axes along which a collective combines partial results."""
    if isinstance(op, AllReduceOp):
        return list(op.reduction_axes.data)
    return [axis for axes in op.reduce_scatter_axes.data for axis in axes]
