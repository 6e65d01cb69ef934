"""Properties of operations."""

from xdsl.ir import Operation
from xdsl.traits import NoMemoryEffect, is_side_effect_free

from sdy.dialect.interfaces import Elementwise
from sdy.ir.fast_access import has_trait
from sdy.ir.shapes import shape
from sdy.rules import is_registered_elementwise
from sdy.stablehlo.shape import BitcastConvertOp


def is_elementwise(operation: Operation) -> bool:
    """Return whether each element of the results depends only on the operands' elements at the same indices."""
    if isinstance(operation, BitcastConvertOp):
        return shape(operation.operand.type) == shape(operation.result.type)
    return has_trait(operation, Elementwise) or is_registered_elementwise(operation)


def is_pure(operation: Operation) -> bool:
    """Return whether `operation` has no side effects, so that it may be copied, moved or removed."""
    return has_trait(operation, NoMemoryEffect) or is_side_effect_free(operation)
