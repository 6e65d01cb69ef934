"""Replication: the fallback for an operation that cannot be partitioned.

Often it is enough to replicate the operation along some axes. For a batch of matrices sharded over "data" whose rows
are sharded over "model", a factorization gathers along "model" only, and each device still factorizes its own matrices.
"""

from dataclasses import dataclass
from typing import Any

from xdsl.ir import OpResult, SSAValue
from xdsl.rewriter import Rewriter

from sdy.axes import AxisRef
from sdy.diagnostics import DiagnosticError, error, op_error
from sdy.dialect import AllReduceOp, ReduceScatterOp
from sdy.passes.common.replication_cost import LocalBytes, describe_op, warn_of_cost
from sdy.passes.common.suggested_rule import suggest_rule
from sdy.passes.spmd.emit.communication import gather
from sdy.passes.spmd.emit.compatibility import combined_axes, users_behind_padding
from sdy.passes.spmd.emit.device_shards import mask_to_first_shard, take_shard
from sdy.passes.spmd.emit.illegality import Illegality, Reason
from sdy.passes.spmd.emit.op_conversion import OpConversion
from sdy.passes.spmd.shards.layout import Layout


@dataclass(frozen=True)
class IllegalSplit:
    """Why an operation cannot be partitioned, and the axes along which it must be replicated."""

    illegality: Illegality
    axes: tuple[AxisRef, ...]


def axes_of(conversion: OpConversion[Any]) -> tuple[AxisRef, ...]:
    """Return the axes of all operands and results."""
    return tuple(dict.fromkeys(axis for layout in conversion.layouts for axes in layout.axes for axis in axes))


def replicate(conversion: OpConversion[Any], reason: Reason) -> None:
    """Replicate the operation along all axes of its operands and results; see `replicate_along`."""
    replicate_along(conversion, IllegalSplit(Illegality(reason), axes_of(conversion)))


def replicate_along(conversion: OpConversion[Any], illegal_split: IllegalSplit) -> OpConversion[Any]:
    """Replicate the operation along the axes of `illegal_split`, with a warning: gather operands, slice results.

    If a collective sums partial results, one device keeps the result and the others contribute zeros.

    Returns:
        The conversion of the operation, with the layouts between the gathers and the slices.

    Raises:
        DiagnosticError: The target does not allow replication, or only some users of a result expect partial sums.
    """
    op = conversion.op
    notes = rule_notes(conversion) if illegal_split.illegality.reason is Reason.NO_RULE else []
    if not conversion.target.allow_replication:
        illegal = error(op, f"failed to legalize operation '{op.name}' that was explicitly marked illegal")
        problem = f"{describe_op(op)} cannot be partitioned: {illegal_split.illegality}"
        raise DiagnosticError(error(op, problem, *notes).diagnostic, illegal.diagnostic)
    larger = OpConversion(
        op,
        tuple(layout.without_axes(illegal_split.axes) for layout in conversion.operands),
        tuple(layout.without_axes(illegal_split.axes) for layout in conversion.results),
        conversion.target,
    )
    summed_axes = [
        [
            axis
            for axis in _summed_axes(result, illegal_split.illegality)
            if any(axis.overlaps(each) for each in illegal_split.axes)
        ]
        for result in op.results
    ]
    what = f"is replicated {_where(illegal_split, larger)}: {illegal_split.illegality}"
    warn_of_cost(op, what, _held(conversion), _held(larger), *notes)
    emit = conversion.before()
    for index, (layout, kept) in enumerate(zip(conversion.operands, larger.operands, strict=True)):
        if layout.axes != kept.axes:
            op.operands[index] = gather(
                emit, op.operands[index], _dropped_axes(layout, kept), layout, conversion.target
            )
    emit = conversion.after()
    for result, layout, kept, axes in zip(op.results, conversion.results, larger.results, summed_axes, strict=True):
        if layout.axes == kept.axes and not axes:
            continue
        users = list(result.uses)
        value: SSAValue = Rewriter.replace_value_with_new_type(result, kept.local_type(result))
        if axes:
            value = mask_to_first_shard(emit, value, 0, axes, conversion.mesh)
        if layout.axes != kept.axes:
            value = take_shard(emit, value, _dropped_axes(layout, kept), layout.mesh)
        for use in users:
            use.operation.operands[use.index] = value
    return larger


def _held(conversion: OpConversion[Any]) -> LocalBytes:
    return LocalBytes(
        *(sum(layout.local_bytes for layout in layouts) for layouts in (conversion.operands, conversion.results))
    )


def rule_notes(conversion: OpConversion[Any]) -> list[str]:
    """Return a suggested sharding rule, as a note for the user, that would let the operation be partitioned."""
    line = suggest_rule(
        conversion.op, *([layout.type for layout in each] for each in (conversion.operands, conversion.results))
    )
    return [line] if line else []


def _dropped_axes(layout: Layout, kept: Layout) -> list[tuple[AxisRef, ...]]:
    """Return the axes of each dimension that are minor to the kept ones."""
    return [axes[len(major) :] for axes, major in zip(layout.axes, kept.axes, strict=True)]


def _where(illegal_split: IllegalSplit, larger: OpConversion[Any]) -> str:
    return f"along {', '.join(map(str, illegal_split.axes))}" if larger.is_split else "on every device"


def _summed_axes(result: OpResult, illegality: Illegality) -> list[AxisRef]:
    """Return the axes along which later collectives sum `result`."""
    users = list(users_behind_padding(result))
    collectives = [user for user in users if isinstance(user, (AllReduceOp, ReduceScatterOp))]
    if not collectives:
        return []
    if len(collectives) < len(users):
        raise op_error(result.op, f"cannot be partitioned, but a collective needs its partial results: {illegality}")
    first = collectives[0]
    return [*(combined_axes(first) if first.reduction == "sum" else ()), *_summed_axes(first.result, illegality)]
