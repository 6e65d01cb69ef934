"""Ranges of element types."""

import math
from typing import cast

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, Float64Type, IntegerType, Signedness
from xdsl.ir import Attribute

IEEE_FLOATS = (BFloat16Type, Float16Type, Float32Type, Float64Type)
"""Float types with infinities and NaNs as in IEEE 754."""


def bounds(element_type: Attribute) -> tuple[float, float]:
    """Return the least and the greatest element of a type; for a float, the infinities."""
    if not isinstance(element_type, IntegerType):
        return -math.inf, math.inf
    integer = cast(IntegerType, element_type)
    width = integer.width.data
    if width == 1 or integer.signedness.data is Signedness.UNSIGNED:
        return 0, 2**width - 1
    return -(2 ** (width - 1)), 2 ** (width - 1) - 1
