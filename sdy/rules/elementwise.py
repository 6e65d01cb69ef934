"""Rules of elementwise operations, and of similar ones such as clamp with scalar bounds."""

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation

from sdy.ir.shapes import shape_of
from sdy.rules.builder import NEED_REPLICATION, RuleBuilder
from sdy.rules.registry import NoRule, register

if TYPE_CHECKING:
    from sdy.stablehlo.batch_norm import BatchNormInferenceOp
    from sdy.stablehlo.mixed_elementwise import ClampOp, SelectOp
    from sdy.stablehlo.shape import BitcastConvertOp

POINTWISE = """
    abs add and atan2 cbrt ceil complex compare convert cosine count_leading_zeros divide exponential
    exponential_minus_one floor imag is_finite log log_plus_one logistic maximum minimum multiply negate not or popcnt
    power real reduce_precision remainder round_nearest_afz round_nearest_even rsqrt shift_left
    shift_right_arithmetic shift_right_logical sign sine sqrt subtract tan tanh xor
"""
"""StableHLO operations with a fixed number of operands that all have the shape of the result."""

ACROSS_REPLICAS = "all_reduce collective_broadcast collective_permute cross-replica-sum"
"""Collectives that are pointwise too: they work across replicas, not along dimensions."""


@register(*(f"stablehlo.{name}" for name in POINTWISE.split()), by_result=True)
@register(*(f"stablehlo.{name}" for name in ACROSS_REPLICAS.split()), "sdy.sharding_constraint")
def pointwise(op: Operation, rule: RuleBuilder) -> None:
    """Add a factor per dimension, shared by all tensors. An operation on tokens has no rule."""
    if not isinstance(op.results[0].type, TensorType):
        raise NoRule
    rule.add_pointwise(shape_of(op.results[0]))


@register("stablehlo.clamp")
def clamp(op: "ClampOp", rule: RuleBuilder) -> None:
    """Add the factors of a pointwise operation; the bounds may be scalars."""
    rule.add_pointwise(shape_of(op.operand))


@register("stablehlo.select")
def select(op: "SelectOp", rule: RuleBuilder) -> None:
    """Add the factors of a pointwise operation; the predicate may be a scalar."""
    rule.add_pointwise(shape_of(op.result))


@register("stablehlo.bitcast_convert")
def bitcast_convert(op: "BitcastConvertOp", rule: RuleBuilder) -> None:
    """Add pointwise factors, and require replication of the extra dimension on the side with the smaller elements."""
    operand, result = shape_of(op.operand), shape_of(op.result)
    rule.add_pointwise(min(operand, result, key=len))
    if len(operand) < len(result):
        rule.add(result[-1], {}, {0: len(result) - 1}, NEED_REPLICATION)
    elif len(operand) > len(result):
        rule.add(operand[-1], {0: len(operand) - 1}, {}, NEED_REPLICATION)


@register("stablehlo.batch_norm_inference")
def batch_norm_inference(op: "BatchNormInferenceOp", rule: RuleBuilder) -> None:
    """Add pointwise factors; scale, offset, mean and variance have only that of the feature dimension."""
    feature = op.feature_index.value.data
    for dim, size in enumerate(shape_of(op.operand)):
        vectors = dict.fromkeys(range(1, len(op.operands)), 0) if dim == feature else {}
        rule.add(size, {0: dim} | vectors, {0: dim})
