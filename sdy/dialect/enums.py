"""The enumerations of the dialect, which operations keep as 32-bit integers and print as words."""

from enum import IntEnum

from xdsl.dialects.builtin import IntegerAttr, IntegerType, i32

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


def direction_attr(direction: PropagationDirection) -> I32Attr:
    """The attribute that stands for `direction`."""
    return IntegerAttr(int(direction), i32)


def reduction_attr(reduction: Reduction) -> I32Attr:
    """The attribute that stands for `reduction`."""
    return IntegerAttr(REDUCTIONS.index(reduction), i32)


def reduction_of(attribute: I32Attr) -> Reduction:
    """The reduction that `attribute` stands for."""
    return REDUCTIONS[attribute.value.data]
