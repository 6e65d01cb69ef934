"""Sizes of dimensions: limits, texts in error messages, and upper bounds of dynamic dimensions.

tensor<?x8xf32, #stablehlo.bounds<16, ?>>
"""

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, NoneAttr, TensorType
from xdsl.ir import Attribute

from sdy.stablehlo.attributes.operation_attributes import BoundsAttr

MAX_DIMENSIONS = 2**16
"""Attributes with an entry per dimension are rejected above this length, before the entries are expanded to a list."""
_MLIR_DYNAMIC = -(1 << 63)


def size_text(size: int) -> str:
    """Return a size as in MLIR's messages, where a dynamic one is -2^63."""
    return str(_MLIR_DYNAMIC if size == DYNAMIC_INDEX else size)


def sizes_text(sizes: Iterable[int]) -> str:
    """Return a comma-separated list of sizes, `4, 8`."""
    return ", ".join(map(size_text, sizes))


def bounds_of(type_: TensorType[Attribute]) -> tuple[int | None, ...]:
    """Return the bound of each dimension, None if it has none; an empty tuple for a tensor without bounds."""
    return type_.encoding.data if isinstance(type_.encoding, BoundsAttr) else ()


def bounded_type(
    element_type: Attribute, shape: Sequence[int], bounds: Sequence[int | None] = ()
) -> TensorType[Attribute]:
    """Build a tensor type with these bounds; without any bound it has no encoding."""
    bounded = any(bound is not None for bound in bounds)
    return TensorType(element_type, shape, BoundsAttr(tuple(bounds)) if bounded else NoneAttr())
