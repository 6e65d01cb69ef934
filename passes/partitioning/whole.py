"""Computing an operation whole on every device: what is always right where computing it in parts is not known how."""

from typing import Any

from xdsl.rewriter import Rewriter

from sdy.diagnostics import DiagnosticError, error, op_error, warn
from sdy.dialect import AllReduceOp, ReduceScatterOp
from sdy.passes.partitioning.collectives import gather
from sdy.passes.partitioning.compatibility import users_behind_padding
from sdy.passes.partitioning.parts import take_part
from sdy.passes.partitioning.site import Site


def compute_whole(site: Site[Any], reason: str) -> None:
    """Gather the operands, leave the operation as it was, and take each device's part of the results; warn of it.

    Raises DiagnosticError where the target wants everything computed in parts, and where the results are expected to
    be partial ones, as a collective that combines them says.
    """
    op = site.op
    if not site.target.compute_whole:
        illegal = error(op, f"failed to legalize operation '{op.name}' that was explicitly marked illegal")
        raise DiagnosticError(op_error(op, reason).diagnostic, illegal.diagnostic)
    for result in op.results:
        if any(isinstance(user, (AllReduceOp, ReduceScatterOp)) for user in users_behind_padding(result)):
            raise op_error(op, f"cannot be computed in parts, as the collective behind it expects: {reason}")
    warn(op, f"'{op.name}' op is computed whole on every device: {reason}")
    emit = site.before()
    for index, (operand, layout) in enumerate(zip(op.operands, site.operands, strict=True)):
        if layout.is_split:
            op.operands[index] = gather(emit, operand, layout.axes, layout, site.target)
    emit = site.after()
    for result, layout in zip(op.results, site.results, strict=True):
        if layout.is_split:
            users = list(result.uses)
            whole = Rewriter.replace_value_with_new_type(result, layout.type)
            part = take_part(emit, whole, layout.axes, layout.mesh)
            for use in users:
                use.operation.operands[use.index] = part
