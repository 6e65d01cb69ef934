"""What passes ask about an operation."""

from xdsl.ir import Operation
from xdsl.traits import NoMemoryEffect, is_side_effect_free

from sdy.dialect.interfaces import Elementwise
from sdy.ir.shapes import shape
from sdy.ir.traits import has_trait
from sdy.rules import is_registered_elementwise
from sdy.stablehlo.shape import BitcastConvertOp


def is_elementwise(operation: Operation) -> bool:
    """Whether each element of the results depends on the elements of the operands at the same place only."""
    if isinstance(operation, BitcastConvertOp):
        return shape(operation.operand.type) == shape(operation.result.type)
    return has_trait(operation, Elementwise) or is_registered_elementwise(operation)


def is_pure(operation: Operation) -> bool:
    """Whether `operation` does nothing but compute its results, so that it may be copied, moved or left out."""
    return has_trait(operation, NoMemoryEffect) or is_side_effect_free(operation)
