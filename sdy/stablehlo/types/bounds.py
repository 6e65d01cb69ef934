"""Upper bounds of dynamic dimensions: `tensor<?x8xf32, #stablehlo.bounds<16, ?>>`."""

from collections.abc import Sequence

from xdsl.dialects.builtin import NoneAttr, TensorType
from xdsl.ir import Attribute

from sdy.stablehlo.attributes.operation_attributes import BoundsAttr


def bounds_of(type_: TensorType[Attribute]) -> tuple[int | None, ...]:
    """Return the bound of each dimension, None if it has none; an empty tuple for a tensor without bounds."""
    return type_.encoding.data if isinstance(type_.encoding, BoundsAttr) else ()


def bounded_type(
    element_type: Attribute, shape: Sequence[int], bounds: Sequence[int | None] = ()
) -> TensorType[Attribute]:
    """Build a tensor type with these bounds; without any bound it has no encoding."""
    bounded = any(bound is not None for bound in bounds)
    return TensorType(element_type, shape, BoundsAttr(tuple(bounds)) if bounded else NoneAttr())
