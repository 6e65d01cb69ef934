"""Enumerations of the dialect: 32-bit integer attributes that print as keywords."""

from enum import IntEnum
from typing import cast

from xdsl.dialects.builtin import IntegerAttr, IntegerType, i32
from xdsl.ir import Attribute
from xdsl.irdl import AttrConstraint
from xdsl.utils.hints import isa

from sdy.ir.constraints import Described
from sdy.sharding import Reduction


class PropagationDirection(IntEnum):
    """Directions in which shardings propagate between operands and results."""

    NONE = 0
    FORWARD = 1
    """From operands to results."""
    BACKWARD = 2
    """From results to operands."""
    BOTH = 3


REDUCTIONS: tuple[Reduction, ...] = ("sum", "max", "min")
"""Reductions in the order of their numbers."""

I32Attr = IntegerAttr[IntegerType]
"""Attribute type of an enumeration."""


def _case_number(description: str, count: int) -> AttrConstraint[I32Attr]:
    """Return the constraint on attributes of an enumeration with `count` cases."""

    def is_case(attribute: Attribute) -> bool:
        return isa(attribute, I32Attr) and attribute.type == i32 and 0 <= attribute.value.data < count

    return cast(AttrConstraint[I32Attr], Described(description, is_case))


DIRECTION = _case_number("propagation direction enum", len(PropagationDirection))
REDUCTION = _case_number("reduction op enum", len(REDUCTIONS))


def direction_attr(direction: PropagationDirection) -> I32Attr:
    """Return the attribute of `direction`."""
    return IntegerAttr(int(direction), i32)


def reduction_attr(reduction: Reduction) -> I32Attr:
    """Return the attribute of `reduction`."""
    return IntegerAttr(REDUCTIONS.index(reduction), i32)


def reduction_of(attribute: I32Attr) -> Reduction:
    """Return the reduction of `attribute`."""
    return REDUCTIONS[attribute.value.data]
