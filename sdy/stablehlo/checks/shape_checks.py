"""What verifiers of several families check about shapes, with MLIR's messages."""

from collections.abc import Sequence, Set
from typing import cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType, UnrankedTensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from sdy.stablehlo.attributes.operation_attributes import BoundsAttr
from sdy.stablehlo.types.quantized import UniformQuantizedType


def tensor_type(value: SSAValue) -> TensorType[Attribute]:
    """The type of a value that the operation's definition says is a tensor."""
    type_: Attribute = value.type
    assert isinstance(type_, TensorType)
    return cast(TensorType[Attribute], type_)


def as_ranked(type_: Attribute) -> TensorType[Attribute] | None:
    """The type of a tensor that has a rank, None of any other."""
    return cast(TensorType[Attribute], type_) if isinstance(type_, TensorType) else None


def elements_of(type_: Attribute) -> Attribute:
    """The type of a tensor's elements; any other type as it is."""
    if isinstance(type_, TensorType | UnrankedTensorType):
        return cast(TensorType[Attribute] | UnrankedTensorType[Attribute], type_).element_type
    return type_


def compatible_shapes(shape: Sequence[int], other: Sequence[int]) -> bool:
    """Whether both have one rank and no two sizes contradict each other; a dynamic size agrees with any."""
    return len(shape) == len(other) and all(
        size == other_size or DYNAMIC_INDEX in (size, other_size) for size, other_size in zip(shape, other, strict=True)
    )


def agreeing_shapes(shapes: Set[tuple[int, ...]]) -> bool:
    """Whether all have one rank and no two of them contradict each other in a size."""
    return len(shapes) < 2 or (
        len(set(map(len, shapes))) == 1
        and all(len({*sizes} - {DYNAMIC_INDEX}) < 2 for sizes in zip(*shapes, strict=True))
    )


def compatible_elements(type_: Attribute, other: Attribute) -> bool:
    """Whether two element types are equal; quantized ones may differ in their scales and zero points."""
    if not (isinstance(type_, UniformQuantizedType) and isinstance(other, UniformQuantizedType)):
        return type_ == other
    one, another = type_.data, other.data
    return (one.axis is None) == (another.axis is None) and all(
        getattr(one, field) == getattr(another, field) for field in ("stored", "low", "high", "expressed")
    )


def within_bounds(shape: Sequence[int], encoding: Attribute) -> bool:
    """Whether no size is beyond the bound that the encoding of another tensor gives its dimension."""
    bounds = encoding.data if isinstance(encoding, BoundsAttr) else ()
    return all(bound is None or size <= bound for size, bound in zip(shape, bounds, strict=False))


def compatible_types(type_: Attribute, other: Attribute) -> bool:
    """Whether two tensor types have compatible element types, shapes and bounds, or two other types are compatible."""
    if type_ == other:
        return True
    tensor, other_tensor = as_ranked(type_), as_ranked(other)
    if tensor is None or other_tensor is None:
        return compatible_elements(elements_of(type_), elements_of(other))
    shape, other_shape = tensor.get_shape(), other_tensor.get_shape()
    return (
        compatible_elements(tensor.element_type, other_tensor.element_type)
        and compatible_shapes(shape, other_shape)
        and within_bounds(shape, other_tensor.encoding)
        and within_bounds(other_shape, tensor.encoding)
    )


def same_shape(type_: Attribute, other: Attribute) -> bool:
    """Whether the shapes of two tensors do not contradict each other; one without a rank agrees with any."""
    tensor, other_tensor = as_ranked(type_), as_ranked(other)
    if tensor is None or other_tensor is None or tensor == other_tensor:
        return True
    return compatible_shapes(tensor.get_shape(), other_tensor.get_shape())


def compatible_type_lists(types: Sequence[Attribute], others: Sequence[Attribute]) -> bool:
    """Whether two lists are of one length and their types compatible, one by one."""
    return len(types) == len(others) and all(map(compatible_types, types, others))


def verify_same_shape(op: Operation, message: str = "requires the same shape for all operands and results") -> None:
    """Refuse, with this message, operands and results that do not all have one shape; and none at all."""
    if not op.operands:
        raise VerifyException("expected 1 or more operands, but found 0")
    if not op.results:
        raise VerifyException("expected 1 or more results")
    tensors = map(as_ranked, (*op.operand_types, *op.result_types))
    if not agreeing_shapes({tensor.get_shape() for tensor in tensors if tensor is not None}):
        raise VerifyException(message)


def verify_same_type(op: Operation) -> None:
    """Refuse an operation whose operands and results do not all have one type, dynamic sizes aside."""
    first, *rest = (*op.operand_types, *op.result_types)
    if not all(compatible_types(type_, first) for type_ in rest):
        raise VerifyException("requires compatible types for all operands and results")
