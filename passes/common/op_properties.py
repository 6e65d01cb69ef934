"""What passes ask about an operation."""

from xdsl.ir import Operation
from xdsl.traits import is_side_effect_free

from sdy.dialect.interfaces import Elementwise
from sdy.stablehlo import BitcastConvertOp


def is_elementwise(operation: Operation) -> bool:
    """Whether each element of the results depends on the elements of the operands at the same place only."""
    if isinstance(operation, BitcastConvertOp):
        return operation.operand.type.get_shape() == operation.result.type.get_shape()
    return operation.has_trait(Elementwise, value_if_unregistered=False)


def is_pure(operation: Operation) -> bool:
    """Whether `operation` does nothing but compute its results, so that it may be copied, moved or left out."""
    return is_side_effect_free(operation)
