"""Sizes of tensors in bytes."""

from math import prod

from xdsl.dialects.builtin import ComplexType, FixedBitwidthType, TensorType
from xdsl.ir import Attribute

from sdy.ir.shapes import is_static_tensor
from sdy.stablehlo.checks.agreement import bit_width
from sdy.stablehlo.types.quantized import UniformQuantizedType

_BYTE = 8
_COMPOUND_ELEMENTS = {ComplexType, UniformQuantizedType}


def num_bytes(type_: Attribute) -> int:
    """Return the bytes of a tensor, at least one per element; 0 for dynamic shapes and other types."""
    if type(type_) is not TensorType or not is_static_tensor(type_):
        return 0
    return prod(type_.get_shape()) * element_bytes(type_)


def element_bytes(type_: Attribute) -> int:
    """Return the bytes of a tensor's element, at least one; 0 for other types."""
    if type(type_) is not TensorType:
        return 0
    element: Attribute = type_.element_type
    is_sized = type(element) in _COMPOUND_ELEMENTS or isinstance(element, FixedBitwidthType)
    return -(-bit_width(element) // _BYTE) if is_sized else 0
