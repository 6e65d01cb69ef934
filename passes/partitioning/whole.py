"""Computing an operation whole on every device: what is always right where computing it in parts is not known how."""

from typing import Any

from xdsl.ir import OpResult, SSAValue
from xdsl.rewriter import Rewriter

from sdy.axes import AxisRef
from sdy.diagnostics import DiagnosticError, error, op_error, warn
from sdy.dialect import AllReduceOp, ReduceScatterOp
from sdy.passes.partitioning.collectives import gather
from sdy.passes.partitioning.compatibility import combined_axes, users_behind_padding
from sdy.passes.partitioning.parts import on_leader, take_part
from sdy.passes.partitioning.site import Site


def compute_whole(site: Site[Any], reason: str) -> None:
    """Gather the operands, leave the operation as it was, and take each device's part of the results; warn of it.

    Where a collective behind adds up what devices have of a result, one of them gives it all and the others give
    zeros. Raises DiagnosticError where the target wants everything computed in parts, and where only some users of a
    result expect it to be partial.
    """
    op = site.op
    if not site.target.compute_whole:
        illegal = error(op, f"failed to legalize operation '{op.name}' that was explicitly marked illegal")
        raise DiagnosticError(op_error(op, reason).diagnostic, illegal.diagnostic)
    summed_axes = [_summed_axes(result, reason) for result in op.results]
    warn(op, f"'{op.name}' op is computed whole on every device: {reason}")
    emit = site.before()
    for index, (operand, layout) in enumerate(zip(op.operands, site.operands, strict=True)):
        if layout.is_split:
            op.operands[index] = gather(emit, operand, layout.axes, layout, site.target)
    emit = site.after()
    for result, layout, axes in zip(op.results, site.results, summed_axes, strict=True):
        if not layout.is_split and not axes:
            continue
        users = list(result.uses)
        value: SSAValue = Rewriter.replace_value_with_new_type(result, layout.type)
        if axes:
            value = on_leader(emit, value, 0, axes, site.mesh)
        if layout.is_split:
            value = take_part(emit, value, layout.axes, layout.mesh)
        for use in users:
            use.operation.operands[use.index] = value


def _summed_axes(result: OpResult, reason: str) -> list[AxisRef]:
    """The axes along which collectives behind `result` add up what devices have of it."""
    users = list(users_behind_padding(result))
    collectives = [user for user in users if isinstance(user, (AllReduceOp, ReduceScatterOp))]
    if not collectives:
        return []
    if len(collectives) < len(users):
        raise op_error(result.op, f"cannot be computed in parts, as the collective behind it expects: {reason}")
    first = collectives[0]
    return [*(combined_axes(first) if first.reduction == "sum" else ()), *_summed_axes(first.result, reason)]
