"""Matching of an iota along dimension 0: 0 in row 0, 1 in row 1, and so on."""

from xdsl.ir import SSAValue

from sdy.dialect.constants import constant_number
from sdy.ir.shapes import shape
from sdy.stablehlo.attributes.enums import ComparisonDirection
from sdy.stablehlo.broadcast import BroadcastInDimOp
from sdy.stablehlo.constants import IotaOp
from sdy.stablehlo.mixed_elementwise import ClampOp, CompareOp, SelectOp
from sdy.stablehlo.shape import ReshapeOp


def is_iota_along_rows(value: SSAValue) -> bool:
    """Return whether each element of an integer tensor is its own index along dimension 0."""
    match operation := value.owner:
        case IotaOp():
            return operation.iota_dimension.value.data == 0
        case ReshapeOp():
            return _same_rows(operation.operand, value) and is_iota_along_rows(operation.operand)
        case BroadcastInDimOp():
            rows_stay = operation.broadcast_dimensions.get_values()[:1] == (0,)
            return rows_stay and _same_rows(operation.operand, value) and is_iota_along_rows(operation.operand)
        case ClampOp():
            low, high = _splat(operation.min), _splat(operation.max)
            all_allowed = low is not None and high is not None and low <= 0 and high >= shape(value.type)[0] - 1
            return all_allowed and is_iota_along_rows(operation.operand)
        case SelectOp():
            return _tests_negative_rows(operation.pred) and is_iota_along_rows(operation.on_false)
        case _:
            return False


def _same_rows(before: SSAValue, after: SSAValue) -> bool:
    return shape(before.type)[:1] == shape(after.type)[:1] != ()


def _tests_negative_rows(predicate: SSAValue) -> bool:
    """Return whether `predicate` compares row indices with < 0, which is always false."""
    compare = predicate.owner
    return (
        isinstance(compare, CompareOp)
        and compare.comparison_direction.data == ComparisonDirection.LT
        and _splat(compare.rhs) == 0
        and is_iota_along_rows(compare.lhs)
    )


def _splat(value: SSAValue) -> int | float | None:
    """Return the element of a splat constant, None for any other value."""
    while isinstance(value.owner, BroadcastInDimOp):
        value = value.owner.operand
    return constant_number(value)
