"""The shapes of values and types.

Tensors, vectors and buffers are shaped; what has no shape, such as a token, counts as a scalar.
"""

from collections.abc import Iterable
from functools import lru_cache
from math import prod

from xdsl.dialects.builtin import DYNAMIC_INDEX, NoneAttr, ShapedType, TensorType
from xdsl.ir import Attribute, SSAValue

from sdy.ir.fields import type_of

_NO_ENCODING = NoneAttr()

_SHAPED = (TensorType, ShapedType)
"""Nearly all types are tensors', which are recognized in no time; to be asked for a shape takes longer."""


def tensor_of(
    element_type: Attribute, sizes: Iterable[int], encoding: Attribute = _NO_ENCODING
) -> TensorType[Attribute]:
    """The type of tensors of these sizes: often the same object, as to make and to check one takes long."""
    return _remembered_tensor(element_type, tuple(sizes), encoding)


@lru_cache(maxsize=2**10)
def _remembered_tensor(element_type: Attribute, sizes: tuple[int, ...], encoding: Attribute) -> TensorType[Attribute]:
    return TensorType(element_type, sizes, encoding)


def shape_of(value: SSAValue) -> tuple[int, ...]:
    """The sizes of the dimensions of a tensor, -1 where unknown; of anything else, a vector too, those of a scalar."""
    type_ = value.type
    return type_.get_shape() if isinstance(type_, TensorType) else ()


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


def is_scalar(value: SSAValue) -> bool:
    """Whether this is a tensor without dimensions."""
    type_ = type_of(value)  # `type` is a call
    if type(type_) is TensorType:
        return not type_.shape.data
    return isinstance(type_, ShapedType) and type_.get_num_dims() == 0
