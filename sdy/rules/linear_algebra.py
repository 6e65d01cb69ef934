"""Whole-matrix algorithms: all but their last dimensions are batches."""

from typing import TYPE_CHECKING

from sdy.ir.shapes import shape_of
from sdy.rules.builder import NEED_REPLICATION, RuleBuilder
from sdy.rules.registry import register
from sdy.stablehlo.attributes.enums import Transpose

if TYPE_CHECKING:
    from sdy.stablehlo.fft import FftOp
    from sdy.stablehlo.linear_algebra import CholeskyOp, TriangularSolveOp


@register("stablehlo.cholesky")
def cholesky(op: "CholeskyOp", rule: RuleBuilder) -> None:
    """The matrix is needed whole."""
    shape = shape_of(op.a)
    rule.add_pointwise(shape, kinds=dict.fromkeys((len(shape) - 2, len(shape) - 1), NEED_REPLICATION))


@register("stablehlo.fft")
def fft(op: "FftOp", rule: RuleBuilder) -> None:
    """The transformed dimensions are needed whole; the last of a real transform has another size in the result."""
    operand, result = shape_of(op.operand), shape_of(op.result)
    last = len(operand) - 1
    transformed = range(len(operand) - len(op.fft_length), len(operand))
    rule.add_pointwise(
        operand,
        kinds=dict.fromkeys(transformed, NEED_REPLICATION),
        blocked=(last,) if operand[last] != result[last] else (),
    )


@register("stablehlo.triangular_solve")
def triangular_solve(op: "TriangularSolveOp", rule: RuleBuilder) -> None:
    """`op(a) x = b`, or `x op(a) = b` if `a` isn't on the left side.

    The matrices are needed whole; their dimensions correspond as in the product that gives `b`.
    """
    a, b = shape_of(op.a), shape_of(op.b)
    rows, columns = len(a) - 2, len(a) - 1
    rule.add_pointwise(a[:rows])

    is_left = bool(op.left_side.value.data)
    is_transposed = op.transpose_a.data in (Transpose.TRANSPOSE, Transpose.ADJOINT)
    # Without a transposition, a's columns meet the rows of x on its right, and a's rows the columns of x on its left.
    contracted, kept = (columns, rows) if is_left != is_transposed else (rows, columns)
    if is_left:
        rule.add(a[kept], {0: kept, 1: rows}, {}, NEED_REPLICATION)
        rule.add(b[columns], {1: columns}, {0: columns}, NEED_REPLICATION)
        rule.add(a[contracted], {0: contracted}, {0: rows}, NEED_REPLICATION)
    else:
        rule.add(b[rows], {1: rows}, {0: rows}, NEED_REPLICATION)
        rule.add(a[kept], {0: kept, 1: columns}, {}, NEED_REPLICATION)
        rule.add(a[contracted], {0: contracted}, {0: columns}, NEED_REPLICATION)
