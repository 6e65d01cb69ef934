"""Replacement of scalars that constants determine by constants: JAX computes the divisor of a variance, for example."""

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from sdy.diagnostics import DiagnosticError
from sdy.dialect.constants import constant_elements, constant_number
from sdy.ir.editing import replace
from sdy.ir.shapes import is_scalar
from sdy.ir.walking import operations
from sdy.passes.common.known_scalars import folded, is_foldable
from sdy.stablehlo.constants import ConstantOp
from sdy.stablehlo.mixed_elementwise import SelectOp


def fold_scalars(module: ModuleOp) -> None:
    """Compute operations of constant scalars, and choose the operand of a select with a constant condition."""
    for op in [*operations(module)]:
        chosen = _chosen(op)
        if chosen is not None:
            replace(op, [chosen])
        elif (constant := _constant(op)) is not None:
            replace(op, constant)


def _chosen(op: Operation) -> SSAValue | None:
    """Return the operand that a select with a constant scalar condition chooses."""
    if not isinstance(op, SelectOp) or not is_scalar(op.pred) or (condition := constant_number(op.pred)) is None:
        return None
    return op.on_true if condition else op.on_false


def _constant(op: Operation) -> ConstantOp | None:
    """Return the constant that an operation of constant scalars computes."""
    if not op.operands or not is_foldable(op):
        return None
    constants = [elements for operand in op.operands if (elements := constant_elements(operand)) is not None]
    if len(constants) < len(op.operands):
        return None
    try:
        return ConstantOp(folded(op, constants))
    except DiagnosticError:  # an operation of another package, without semantics
        return None
