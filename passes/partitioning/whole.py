"""Computing an operation whole on every device: what is always right where computing it in parts is not known how."""

from typing import Any

from xdsl.ir import OpResult
from xdsl.rewriter import Rewriter

from sdy.diagnostics import op_error, warn
from sdy.dialect import AllReduceOp, ReduceScatterOp
from sdy.passes.partitioning.collectives import gather, take_part
from sdy.passes.partitioning.compatibility import users_behind_padding
from sdy.passes.partitioning.emitter import after, before
from sdy.passes.partitioning.layout import Layout
from sdy.passes.partitioning.site import Site


def compute_whole(site: Site[Any], reason: str) -> None:
    """Gather the operands, leave the operation as it was, and take each device's part of the results; warn of it.

    Raises DiagnosticError where the results are expected to be partial ones, as a collective that combines them says.
    """
    op = site.op
    for result in op.results:
        if any(isinstance(user, (AllReduceOp, ReduceScatterOp)) for user in users_behind_padding(result)):
            raise op_error(op, f"cannot be computed in parts, as the collective behind it expects: {reason}")
    warn(op, f"'{op.name}' op is computed whole on every device: {reason}")
    emit = before(op)
    for index, (operand, layout) in enumerate(zip(op.operands, site.operands, strict=True)):
        if layout.is_split:
            op.operands[index] = gather(emit, operand, layout.axes, layout.mesh, site.channels)
    for result, layout in zip(op.results, site.results, strict=True):
        if layout.is_split:
            _take_part_of_result(result, layout)


def _take_part_of_result(result: OpResult, layout: Layout) -> None:
    users = list(result.uses)
    whole = Rewriter.replace_value_with_new_type(result, layout.type)
    part = take_part(after(result.op), whole, layout.axes, layout.mesh)
    for use in users:
        use.operation.operands[use.index] = part
