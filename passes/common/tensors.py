"""What passes ask about the type of a value."""

from math import prod

from xdsl.dialects.builtin import DYNAMIC_INDEX, ShapedType, TensorType
from xdsl.ir import Attribute, SSAValue

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
    type_ = value.type
    if not isinstance(type_, _SHAPED):
        return 0
    sizes = type_.get_shape()
    return 0 if DYNAMIC_INDEX in sizes else prod(sizes)


def is_scalar(value: SSAValue) -> bool:
    """Whether this is a tensor without dimensions."""
    type_ = value._type  # `type` is a call  # pyright: ignore[reportPrivateUsage]
    if type(type_) is TensorType:
        return not type_.shape.data
    return isinstance(type_, ShapedType) and type_.get_num_dims() == 0
