"""Rules of the dialects `arith` and `math`, elementwise operations on tensors, and `chlo`.

Operations on scalars have no rule. Shardy has no rules for CHLO: XLA decomposes these operations to StableHLO before it
runs Shardy. Shardings propagate through the decompositions as they do with these rules.
"""

from typing import TYPE_CHECKING

from sdy.ir.shapes import shape_of
from sdy.rules.builder import NEED_REPLICATION, RuleBuilder
from sdy.rules.elementwise import pointwise
from sdy.rules.registry import register, register_without_rule

if TYPE_CHECKING:
    from sdy.stablehlo.chlo.creation import TopKOp

ARITH = """
    addf addi addui_extended andi bitcast ceildivsi ceildivui cmpf cmpi convertf divf divsi divui extf extsi extui
    floordivsi fptosi fptoui index_cast index_castui maximumf maxnumf maxsi maxui minimumf minnumf minsi minui mulf
    muli mulsi_extended mului_extended negf ori remf remsi remui select shli shrsi shrui sitofp subf subi truncf
    trunci uitofp xori
"""

MATH = """
    absf absi acos acosh asin asinh atan atan2 atanh cbrt ceil clampf copysign cos cosh ctlz ctpop cttz erf erfc exp
    exp2 expm1 floor fma fpowi ipowi isfinite isinf isnan isnormal log log10 log1p log2 powf round roundeven rsqrt sin
    sincos sinh sqrt tan tanh trunc
"""

register(*(f"arith.{name}" for name in ARITH.split()), elementwise=True)(pointwise)
register(*(f"math.{name}" for name in MATH.split()), elementwise=True)(pointwise)
register_without_rule("arith.constant")

CHLO = """
    acos acosh asin asinh _asin_acos_kernel atan atanh bessel_i1e conj constant_like cosh digamma erf erf_inv erfc
    is_inf is_neg_inf is_pos_inf lgamma mulhi next_after polygamma sinh square tan zeta
"""
"""Operations whose operands all have the shape of the result."""

register(*(f"chlo.{name}" for name in CHLO.split()), by_result=True)(pointwise)


@register("chlo.top_k")
def top_k(op: "TopKOp", rule: RuleBuilder) -> None:
    """Require replication of the last dimension, even if all of its elements are kept, since they are reordered."""
    *batch, size = shape_of(op.operand)
    rule.add_pointwise((*batch, size), kinds={len(batch): NEED_REPLICATION}, blocked=(len(batch),))
