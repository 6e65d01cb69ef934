"""Rules of the dialects `arith` and `math`, elementwise operations on tensors, and `chlo`.

Operations on scalars have no rule. Shardy has no rules for CHLO: XLA decomposes these operations to StableHLO before it
runs Shardy. Shardings propagate through the decompositions as they do with these rules.
"""

from typing import TYPE_CHECKING

from sdy.ir.shapes import shape_of
from sdy.rules.builder import NEED_REPLICATION, REDUCTION, RuleBuilder
from sdy.rules.elementwise import pointwise
from sdy.rules.registry import register, register_without_rule
from sdy.stablehlo.chlo.attributes import outer_dims

if TYPE_CHECKING:
    from sdy.stablehlo.chlo.creation import TopKOp
    from sdy.stablehlo.chlo.ragged_dot import RaggedDotOp

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


@register("chlo.ragged_dot")
def ragged_dot(op: "RaggedDotOp", rule: RuleBuilder) -> None:
    """Add the factors of the dot product; the groups are replicated, since each device has elements of all of them.

    The ragged dimension can be sharded: a device computes its part of each group. A dimension before it that has group
    sizes of its own shares its factor with them.
    """
    dims = op.ragged_dot_dimension_numbers.data
    lhs, rhs, groups = shape_of(op.lhs), shape_of(op.rhs), shape_of(op.group_sizes)
    (ragged,) = dims.lhs_ragged_dimensions
    contracting = dict(zip(dims.lhs_contracting_dimensions, dims.rhs_contracting_dimensions, strict=True))
    batching = dict(zip(dims.lhs_batching_dimensions, dims.rhs_batching_dimensions, strict=True))
    free = [dim for dim in range(len(lhs)) if dim not in contracting and dim not in batching]
    outer = outer_dims(dims) if len(groups) > 1 else []
    result_dim = int(ragged in contracting)  # the dimension of groups comes first

    def sizes_dim(dim: int) -> dict[int, int]:
        return {2: outer.index(dim)} if dim in outer else {}

    for dim in (*batching, *free):
        pair = {1: batching[dim]} if dim in batching else {}
        rule.add(lhs[dim], {0: dim, **pair, **sizes_dim(dim)}, {0: result_dim})
        result_dim += 1
    used = {*contracting.values(), *batching.values(), *dims.rhs_group_dimensions}
    for dim in range(len(rhs)):
        if dim not in used:
            rule.add(rhs[dim], {1: dim}, {0: result_dim})
            result_dim += 1
    for left, right in contracting.items():
        rule.add(lhs[left], {0: left, 1: right, **sizes_dim(left)}, {}, REDUCTION)
    group = {2: len(groups) - 1, **{1: dim for dim in dims.rhs_group_dimensions}}  # noqa: B035 (at most one)
    rule.add(groups[len(groups) - 1], group, {0: 0} if ragged in contracting else {}, NEED_REPLICATION)
