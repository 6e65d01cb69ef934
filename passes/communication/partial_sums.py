"""Sums over devices behind operations that commute with them."""

from xdsl.dialects.builtin import AnyFloat, IntegerType, i1
from xdsl.ir import SSAValue

from sdy.passes.common.properties import uniform_number
from sdy.passes.spmd.plan.reduction_kinds import region_reduction
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.elementwise import ConvertOp, DivOp, MulOp, NegOp
from sdy.stablehlo.reducing_collectives import AllReduceOp
from sdy.stablehlo.shape import ReshapeOp, TransposeOp


def reduction_behind(value: SSAValue) -> AllReduceOp | None:
    """Return the all-reduce whose sum `value` is, behind operations that commute with it, if nothing else uses it.

    They are casts to wider floats, negations, reshapes, transposes and products of floats with constants.
    """
    while value.has_one_use():
        match op := value.owner:
            case AllReduceOp():
                is_sum = len(op.operands) == 1 and region_reduction(op.computation) == "sum"
                return op if is_sum and is_linear(op.operands[0]) else None
            case ReshapeOp() | TransposeOp() | NegOp():
                value = op.operand
            case ConvertOp() if _is_wider_float(op):
                value = op.operand
            case MulOp() | DivOp() if isinstance(tensor_type(value).element_type, AnyFloat):
                if uniform_number(op.rhs) is not None:
                    value = op.lhs
                elif isinstance(op, MulOp) and uniform_number(op.lhs) is not None:
                    value = op.rhs
                else:
                    return None
            case _:
                return None
    return None


def is_linear(value: SSAValue) -> bool:
    """Return whether sums of the type are sums: those of truth values are not."""
    type_ = tensor_type(value).element_type
    return isinstance(type_, AnyFloat | IntegerType) and type_ != i1


def _is_wider_float(op: ConvertOp) -> bool:
    before, after = (tensor_type(value).element_type for value in (op.operand, op.result))
    return isinstance(before, AnyFloat) and isinstance(after, AnyFloat) and before.bitwidth < after.bitwidth
