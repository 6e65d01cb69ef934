"""Sums over devices behind operations that commute with them."""

from collections.abc import Mapping

from xdsl.dialects.builtin import AnyFloat, IntegerType, bf16, f32, f64, i1
from xdsl.ir import Attribute, SSAValue

from sdy.ir.shapes import num_elements
from sdy.passes.common.properties import uniform_number
from sdy.passes.spmd.plan.reduction_kinds import region_reduction
from sdy.stablehlo.broadcast import BroadcastInDimOp
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.elementwise import ConvertOp, DivOp, MulOp, NegOp
from sdy.stablehlo.reducing_collectives import AllReduceOp
from sdy.stablehlo.shape import ReshapeOp, TransposeOp

_FACTORS: Mapping[Attribute, tuple[float, float]] = dict.fromkeys((bf16, f32, f64), (2.0**-32, 2.0**32))
"""The least and the greatest factors by which partial sums are multiplied, instead of their sum."""

_FACTORS_OF_NARROW_EXPONENTS = (2.0**-12, 1.0)


def reduction_behind(value: SSAValue) -> AllReduceOp | None:
    """Return the all-reduce whose sum `value` is, behind operations that commute with it, if nothing else uses it.

    They are casts to wider floats, negations, reshapes, also by broadcasts, transposes and products of floats with
    constants. With infinite or very large constants, or the reciprocal of zero, partial sums of both signs would become
    infinite, and their sum not a number.
    """
    while value.has_one_use():
        match op := value.owner:
            case AllReduceOp():
                is_sum = len(op.operands) == 1 and region_reduction(op.computation) == "sum"
                return op if is_sum and is_linear(op.operands[0]) else None
            case ReshapeOp() | TransposeOp() | NegOp():
                value = op.operand
            case BroadcastInDimOp() if num_elements(op.operand) == num_elements(op.result):
                value = op.operand
            case ConvertOp() if _is_wider_float(op):
                value = op.operand
            case MulOp() | DivOp():
                scaled = _scaled(op)
                if scaled is None:
                    return None
                value = scaled
            case _:
                return None
    return None


def _scaled(op: MulOp | DivOp) -> SSAValue | None:
    """Return the operand that is multiplied by a constant, or divided by one; None if partial sums could overflow."""
    element_type = tensor_type(op.result).element_type
    if not isinstance(element_type, AnyFloat):
        return None
    least, greatest = _FACTORS.get(element_type, _FACTORS_OF_NARROW_EXPONENTS)
    if isinstance(op, DivOp):
        divisor = uniform_number(op.rhs)
        return op.lhs if divisor is not None and least * abs(divisor) <= 1 <= greatest * abs(divisor) else None
    for factor, other in ((uniform_number(op.rhs), op.lhs), (uniform_number(op.lhs), op.rhs)):
        if factor is not None:
            return other if least <= abs(factor) <= greatest else None
    return None


def is_linear(value: SSAValue) -> bool:
    """Return whether sums of the type are sums: those of truth values are not."""
    type_ = tensor_type(value).element_type
    return isinstance(type_, AnyFloat | IntegerType) and type_ != i1


def _is_wider_float(op: ConvertOp) -> bool:
    before, after = (tensor_type(value).element_type for value in (op.operand, op.result))
    return isinstance(before, AnyFloat) and isinstance(after, AnyFloat) and before.bitwidth < after.bitwidth
