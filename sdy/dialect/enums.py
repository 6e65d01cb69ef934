"""The enumerations of the dialect, which operations keep as 32-bit integers and print as words."""

from enum import IntEnum
from typing import cast

from xdsl.dialects.builtin import IntegerAttr, IntegerType, i32
from xdsl.ir import Attribute
from xdsl.irdl import AttrConstraint
from xdsl.utils.hints import isa

from sdy.ir.type_constraints import Described
from sdy.sharding import Reduction


class PropagationDirection(IntEnum):
    """Between operands and results, the ways in which a sharding may go."""

    NONE = 0
    FORWARD = 1
    """From operands to results."""
    BACKWARD = 2
    """From results to operands."""
    BOTH = 3


REDUCTIONS: tuple[Reduction, ...] = ("sum", "max", "min")
"""The reductions in the order of their numbers."""

I32Attr = IntegerAttr[IntegerType]
"""The type of an enumeration's attribute."""


def _case_number(description: str, count: int) -> AttrConstraint[I32Attr]:
    """The constraint on the attribute of an enumeration of `count` cases."""

    def is_case(attribute: Attribute) -> bool:
        return isa(attribute, I32Attr) and attribute.type == i32 and 0 <= attribute.value.data < count

    return cast(AttrConstraint[I32Attr], Described(description, is_case))


DIRECTION = _case_number("propagation direction enum", len(PropagationDirection))
REDUCTION = _case_number("reduction op enum", len(REDUCTIONS))


def direction_attr(direction: PropagationDirection) -> I32Attr:
    """The attribute that stands for `direction`."""
    return IntegerAttr(int(direction), i32)


def reduction_attr(reduction: Reduction) -> I32Attr:
    """The attribute that stands for `reduction`."""
    return IntegerAttr(REDUCTIONS.index(reduction), i32)


def reduction_of(attribute: I32Attr) -> Reduction:
    """The reduction that `attribute` stands for."""
    return REDUCTIONS[attribute.value.data]
