"""Rules of dot products."""

from typing import TYPE_CHECKING

from sdy.ir.shapes import shape_of
from sdy.rules.builder import REDUCTION, Factors
from sdy.rules.registry import register

if TYPE_CHECKING:
    from sdy.stablehlo.dot import DotGeneralOp, DotOp


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
