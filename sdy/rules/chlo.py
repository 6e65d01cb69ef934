"""CHLO: functions that JAX calls by name, an element at a time, and the largest elements.

Shardy has no rules for them. In XLA it meets a program in which each has been replaced by the StableHLO operations that
compute it, through which shardings pass as they do here.
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
"""Operations all of whose operands have the shape of the result."""

register(*(f"chlo.{name}" for name in POINTWISE.split()), by_result=True)(pointwise)


@register("chlo.top_k")
def top_k(op: "TopKOp", rule: RuleBuilder) -> None:
    """The last dimension is needed whole, even where all of it is kept: its elements change places."""
    *batch, size = shape_of(op.operand)
    rule.add_pointwise((*batch, size), kinds={len(batch): NEED_REPLICATION}, blocked=(len(batch),))
