"""Rules of CHLO operations: elementwise functions and `top_k`.

Shardy has no rules for CHLO: XLA decomposes these operations to StableHLO before it runs Shardy. Shardings propagate
through the decompositions as they do with these rules.
"""

from typing import TYPE_CHECKING

from sdy.ir.shapes import shape_of
from sdy.rules.builder import NEED_REPLICATION, RuleBuilder
from sdy.rules.elementwise import pointwise
from sdy.rules.registry import register

if TYPE_CHECKING:
    from sdy.stablehlo.chlo.creation import TopKOp

POINTWISE = """
    acos acosh asin asinh _asin_acos_kernel atan atanh bessel_i1e conj constant_like cosh digamma erf erf_inv erfc
    is_inf is_neg_inf is_pos_inf lgamma mulhi next_after polygamma sinh square tan zeta
"""
"""Operations whose operands all have the shape of the result."""

register(*(f"chlo.{name}" for name in POINTWISE.split()), by_result=True)(pointwise)


@register("chlo.top_k")
def top_k(op: "TopKOp", rule: RuleBuilder) -> None:
    """Require replication of the last dimension, even if all of its elements are kept, since they are reordered."""
    *batch, size = shape_of(op.operand)
    rule.add_pointwise((*batch, size), kinds={len(batch): NEED_REPLICATION}, blocked=(len(batch),))
