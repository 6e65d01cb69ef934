"""Compatibility of shapes and types, shared by several verifiers, with MLIR's messages."""

from collections.abc import Sequence, Set
from typing import cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType, UnrankedTensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from sdy.stablehlo.attributes.operation_attributes import BoundsAttr
from sdy.stablehlo.types.quantized import UniformQuantizedType


def tensor_type(value: SSAValue) -> TensorType[Attribute]:
    """Return the type of a value that is a ranked tensor by the operation's definition."""
    type_: Attribute = value.type
    assert isinstance(type_, TensorType)
    return cast(TensorType[Attribute], type_)


def as_ranked(type_: Attribute) -> TensorType[Attribute] | None:
    """Return a ranked tensor type, None for any other type."""
    return cast(TensorType[Attribute], type_) if isinstance(type_, TensorType) else None


def elements_of(type_: Attribute) -> Attribute:
    """Return the element type of a tensor type; other types are returned unchanged."""
    if isinstance(type_, TensorType | UnrankedTensorType):
        return cast(TensorType[Attribute] | UnrankedTensorType[Attribute], type_).element_type
    return type_


def compatible_shapes(shape: Sequence[int], other: Sequence[int]) -> bool:
    """Return whether two shapes have the same rank and compatible sizes; a dynamic size is compatible with any."""
    return len(shape) == len(other) and all(
        size == other_size or DYNAMIC_INDEX in (size, other_size) for size, other_size in zip(shape, other, strict=True)
    )


def all_compatible_shapes(shapes: Set[tuple[int, ...]]) -> bool:
    """Return whether all shapes are compatible with each other."""
    return len(shapes) < 2 or (
        len(set(map(len, shapes))) == 1
        and all(len({*sizes} - {DYNAMIC_INDEX}) < 2 for sizes in zip(*shapes, strict=True))
    )


def compatible_elements(type_: Attribute, other: Attribute) -> bool:
    """Return whether two element types are equal; quantized ones may differ in scales and zero points."""
    if not (isinstance(type_, UniformQuantizedType) and isinstance(other, UniformQuantizedType)):
        return type_ == other
    one, another = type_.data, other.data
    return (one.axis is None) == (another.axis is None) and all(
        getattr(one, field) == getattr(another, field) for field in ("stored", "low", "high", "expressed")
    )


def within_bounds(shape: Sequence[int], encoding: Attribute) -> bool:
    """Return whether no size exceeds the bounds in an encoding."""
    bounds = encoding.data if isinstance(encoding, BoundsAttr) else ()
    return all(bound is None or size <= bound for size, bound in zip(shape, bounds, strict=False))


def compatible_types(type_: Attribute, other: Attribute) -> bool:
    """Return whether two types are compatible: in element types, shapes and bounds of ranked tensors."""
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
    """Return whether the shapes of two tensor types are compatible; an unranked one is compatible with any."""
    tensor, other_tensor = as_ranked(type_), as_ranked(other)
    if tensor is None or other_tensor is None or tensor == other_tensor:
        return True
    return compatible_shapes(tensor.get_shape(), other_tensor.get_shape())


def compatible_type_lists(types: Sequence[Attribute], others: Sequence[Attribute]) -> bool:
    """Return whether two lists have the same length and pairwise compatible types."""
    return len(types) == len(others) and all(map(compatible_types, types, others))


def verify_same_shape(op: Operation, message: str = "requires the same shape for all operands and results") -> None:
    """Raise VerifyException unless all operands and results have compatible shapes, and there are some of each."""
    if not op.operands:
        raise VerifyException("expected 1 or more operands, but found 0")
    if not op.results:
        raise VerifyException("expected 1 or more results")
    tensors = map(as_ranked, (*op.operand_types, *op.result_types))
    if not all_compatible_shapes({tensor.get_shape() for tensor in tensors if tensor is not None}):
        raise VerifyException(message)


def verify_same_type(op: Operation) -> None:
    """Raise VerifyException unless all operands and results have compatible types."""
    first, *rest = (*op.operand_types, *op.result_types)
    if not all(compatible_types(type_, first) for type_ in rest):
        raise VerifyException("requires compatible types for all operands and results")
