"""Rules of dot products, and of matrix algorithms and the FFT, whose leading dimensions are batch dimensions."""

from typing import TYPE_CHECKING

from sdy.ir.shapes import shape_of
from sdy.rules.builder import NEED_REPLICATION, REDUCTION, Factors, RuleBuilder
from sdy.rules.registry import register
from sdy.stablehlo.attributes.enums import Transpose

if TYPE_CHECKING:
    from sdy.stablehlo.dot import DotGeneralOp, DotOp
    from sdy.stablehlo.linear_algebra import CholeskyOp, FftOp, TriangularSolveOp


@register("stablehlo.cholesky")
def cholesky(op: "CholeskyOp", rule: RuleBuilder) -> None:
    """Require replication of the matrix dimensions."""
    shape = shape_of(op.a)
    rule.add_pointwise(shape, kinds=dict.fromkeys((len(shape) - 2, len(shape) - 1), NEED_REPLICATION))


@register("stablehlo.fft")
def fft(op: "FftOp", rule: RuleBuilder) -> None:
    """Require replication of the transformed dimensions; block propagation along a dimension that changes its size."""
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
    """Add the factors of the solution of `op(a) x = b`, or of `x op(a) = b` if `a` is on the right side.

    The matrix dimensions require replication; they share factors as in the product that yields `b`.
    """
    a, b = shape_of(op.a), shape_of(op.b)
    rows, columns = len(a) - 2, len(a) - 1
    rule.add_pointwise(a[:rows])

    is_left = bool(op.left_side.value.data)
    is_transposed = op.transpose_a.data in (Transpose.TRANSPOSE, Transpose.ADJOINT)
    # Without a transposition, the columns of a are contracted with the rows of x in a x, and the rows of a in x a.
    contracted, kept = (columns, rows) if is_left != is_transposed else (rows, columns)
    if is_left:
        rule.add(a[kept], {0: kept, 1: rows}, {}, NEED_REPLICATION)
        rule.add(b[columns], {1: columns}, {0: columns}, NEED_REPLICATION)
        rule.add(a[contracted], {0: contracted}, {0: rows}, NEED_REPLICATION)
    else:
        rule.add(b[rows], {1: rows}, {0: rows}, NEED_REPLICATION)
        rule.add(a[kept], {0: kept, 1: columns}, {}, NEED_REPLICATION)
        rule.add(a[contracted], {0: contracted}, {0: columns}, NEED_REPLICATION)


@register("stablehlo.dot_general")
def dot_general(op: "DotGeneralOp", rule: Factors) -> None:
    """Add the factors `([b, i, k],[b, k, j])->([b, i, j])`: those of the result in order, then the contracted ones."""
    lhs, rhs = shape_of(op.lhs), shape_of(op.rhs)
    dims = op.dot_dimension_numbers.data
    batching = list(zip(dims.lhs_batching_dimensions, dims.rhs_batching_dimensions, strict=True))
    contracting = list(zip(dims.lhs_contracting_dimensions, dims.rhs_contracting_dimensions, strict=True))
    paired_lhs, paired_rhs = ({pair[side] for pair in batching + contracting} for side in (0, 1))
    lhs_only = [{0: dim} for dim in range(len(lhs)) if dim not in paired_lhs]
    rhs_only = [{1: dim} for dim in range(len(rhs)) if dim not in paired_rhs]

    places = [{0: left, 1: right} for left, right in batching] + lhs_only + rhs_only
    for result_dim, place in enumerate(places):
        rule.add(lhs[place[0]] if 0 in place else rhs[place[1]], place, {0: result_dim})
    for left, right in contracting:
        rule.add(lhs[left], {0: left, 1: right}, {}, REDUCTION)


@register("stablehlo.dot")
def dot(op: "DotOp", rule: Factors) -> None:
    """Add the factors of a product of matrices or vectors; the last lhs and the first rhs dimension are contracted."""
    lhs, rhs = shape_of(op.lhs), shape_of(op.rhs)
    if len(lhs) == 2:
        rule.add(lhs[0], {0: 0}, {0: 0})
    if len(rhs) == 2:
        rule.add(rhs[1], {1: 1}, {0: len(lhs) - 1})
    rule.add(rhs[0], {0: len(lhs) - 1, 1: 0}, {}, REDUCTION)
