"""Rules of the `arith` and `math` dialects: elementwise operations on tensors. Operations on scalars have no rule."""

from sdy.rules.elementwise import pointwise
from sdy.rules.registry import register, register_without_rule

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
