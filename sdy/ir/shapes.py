"""Shapes of values and types.

Tensors, vectors and buffers are shaped; values without a shape, such as tokens, count as scalars.
"""

from collections.abc import Iterable
from functools import lru_cache
from math import prod

from xdsl.dialects.builtin import DYNAMIC_INDEX, NoneAttr, ShapedType, TensorType
from xdsl.ir import Attribute, SSAValue

from sdy.ir.fast_access import type_of

_NO_ENCODING = NoneAttr()

_SHAPED = (TensorType, ShapedType)
"""Shaped types; TensorType comes first, as the isinstance check of ShapedType, a base class, is slow."""


def tensor_of(
    element_type: Attribute, sizes: Iterable[int], encoding: Attribute = _NO_ENCODING
) -> TensorType[Attribute]:
    """Return a cached tensor type, as creating and verifying one takes long."""
    return _cached_tensor(element_type, tuple(sizes), encoding)


@lru_cache(maxsize=2**10)
def _cached_tensor(element_type: Attribute, sizes: tuple[int, ...], encoding: Attribute) -> TensorType[Attribute]:
    return TensorType(element_type, sizes, encoding)


def shape_of(value: SSAValue) -> tuple[int, ...]:
    """Return the shape of a tensor, with -1 for dynamic dimensions; () for any other value, even a vector."""
    type_ = value.type
    return type_.get_shape() if isinstance(type_, TensorType) else ()


def rank(type_: Attribute) -> int:
    """Return the rank of a tensor type; 0 for a type without a shape, such as a token."""
    return len(shape(type_))


def shape(type_: Attribute) -> tuple[int, ...]:
    """Return the shape of a shaped type, with -1 for dynamic dimensions; () for other types."""
    return type_.get_shape() if isinstance(type_, _SHAPED) else ()


def is_static_tensor(type_: Attribute) -> bool:
    """Return whether this is a shaped type with a static shape."""
    return isinstance(type_, _SHAPED) and DYNAMIC_INDEX not in type_.get_shape()


def has_elements(type_: Attribute) -> bool:
    """Return whether this is a shaped type with a static shape of at least one element."""
    return is_static_tensor(type_) and 0 not in shape(type_)


def num_elements(value: SSAValue) -> int:
    """Return the number of elements of a tensor; 0 if it is unknown."""
    return num_elements_of(value.type)


def num_elements_of(type_: Attribute) -> int:
    """Return the number of elements of a tensor type; 0 if it is unknown."""
    if not isinstance(type_, _SHAPED):
        return 0
    sizes = type_.get_shape()
    return 0 if DYNAMIC_INDEX in sizes else prod(sizes)


def is_scalar(value: SSAValue) -> bool:
    """Return whether this is a tensor of rank 0."""
    type_ = type_of(value)  # `value.type` calls a property
    if type(type_) is TensorType:
        return not type_.shape.data
    return isinstance(type_, ShapedType) and type_.get_num_dims() == 0
