"""What passes ask about the type of a value."""

from math import prod

from xdsl.dialects.builtin import DYNAMIC_INDEX, ComplexType, FixedBitwidthType, ShapedType, TensorType
from xdsl.ir import Attribute, SSAValue

from sdy.ir.fields import type_of
from sdy.stablehlo.checks.agreement import bit_width
from sdy.stablehlo.types.quantized import UniformQuantizedType

_BYTE = 8
_OF_PARTS = {ComplexType, UniformQuantizedType}

_SHAPED = (TensorType, ShapedType)
"""Nearly all types are tensors', which are recognized in no time; to be asked for a shape takes longer."""


def rank(type_: Attribute) -> int:
    """The number of dimensions of a tensor type; 0 for a type that is not shaped, such as a token."""
    return len(shape(type_))


def shape(type_: Attribute) -> tuple[int, ...]:
    """The sizes of the dimensions of a tensor type, -1 where unknown; none for a type that is not shaped."""
    return type_.get_shape() if isinstance(type_, _SHAPED) else ()


def is_static_tensor(type_: Attribute) -> bool:
    """Whether this is a shaped type all of whose dimensions are known."""
    return isinstance(type_, _SHAPED) and DYNAMIC_INDEX not in type_.get_shape()


def num_elements(value: SSAValue) -> int:
    """The size of a tensor; 0 where it is not known."""
    return num_elements_of(value.type)


def num_elements_of(type_: Attribute) -> int:
    """The size of a tensor of this type; 0 where it is not known."""
    if not isinstance(type_, _SHAPED):
        return 0
    sizes = type_.get_shape()
    return 0 if DYNAMIC_INDEX in sizes else prod(sizes)


def num_bytes(type_: Attribute) -> int:
    """The bytes of a tensor, each element taking at least one; none where its size is not known, or it is no tensor."""
    if type(type_) is not TensorType or not is_static_tensor(type_):
        return 0
    element: Attribute = type_.element_type
    size = (
        -(-bit_width(element) // _BYTE) if type(element) in _OF_PARTS or isinstance(element, FixedBitwidthType) else 0
    )
    return prod(type_.get_shape()) * size


def is_scalar(value: SSAValue) -> bool:
    """Whether this is a tensor without dimensions."""
    type_ = type_of(value)  # `type` is a call
    if type(type_) is TensorType:
        return not type_.shape.data
    return isinstance(type_, ShapedType) and type_.get_num_dims() == 0
