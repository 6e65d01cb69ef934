"""Constraints on the types of operands and results, with MLIR's descriptions.

    operand = operand_def(TENSOR)
    indices = operand_def(ranked(INTEGERS))
    start_indices = var_operand_def(scalar(INTEGERS))

The verifier reports a violation as `operand #1 must be ranked tensor of 2/4/8/16/32/64-bit integer values, but got
'tensor<f32>'`. The element types are listed in MLIR's order.
"""

from collections.abc import Callable
from typing import cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, TensorType, TupleType, UnrankedTensorType
from xdsl.ir import Attribute

from sdy.ir.constraints import Described, either
from sdy.stablehlo.attributes.operation_attributes import BoundsAttr
from sdy.stablehlo.types.element_types import (
    ALL,
    ALL_BY_AXIS,
    BOOLEANS,
    DIMENSIONS,
    I32,
    INTEGERS,
    QUANTIZED_BY_AXIS,
    UI32,
    UNQUANTIZED,
    Elements,
)
from sdy.stablehlo.types.quantized import UniformQuantizedType
from sdy.stablehlo.types.special import FutureType, TokenType

Kinds = tuple[Elements, ...]
Tensor = TensorType[Attribute]


def ranked(kinds: Kinds) -> Described:
    """Return the constraint of ranked tensors with these element types."""
    return _tensors("ranked tensor", kinds)


def scalar(kinds: Kinds) -> Described:
    """Return the constraint of rank-0 tensors."""
    return _tensors("0D tensor", kinds, lambda tensor: tensor.get_num_dims() == 0)


def vector(kinds: Kinds) -> Described:
    """Return the constraint of rank-1 tensors."""
    return _tensors("1D tensor", kinds, lambda tensor: tensor.get_num_dims() == 1)


def static(kinds: Kinds, rank: int | None = None, name: str = "statically shaped tensor") -> Described:
    """Return the constraint of tensors with a static shape and, if specified, a rank."""
    return _tensors(name, kinds, lambda tensor: tensor.has_static_shape() and rank in (None, tensor.get_num_dims()))


def any_rank(kinds: Kinds) -> Described:
    """Return the constraint of ranked or unranked tensors, as CHLO has them."""
    known = _tensors("tensor", kinds)

    def accepts(type_: Attribute) -> bool:
        if isinstance(type_, UnrankedTensorType):
            return _holds(cast(UnrankedTensorType[Attribute], type_).element_type, kinds)
        return known.accepts(type_)

    return Described(known.description, accepts)


def buffer(kinds: Kinds) -> Described:
    """Return the constraint of ranked memrefs."""
    return Described(
        f"memref of {_named(kinds)} values",
        lambda type_: isinstance(type_, MemRefType) and _holds(cast(MemRefType, type_).element_type, kinds),
    )


def nested_tuple(*constraints: Described) -> Described:
    """Return the constraint of tuples of these types, nested to any depth."""
    one = either(*constraints)

    def accepts(type_: Attribute) -> bool:
        return isinstance(type_, TupleType) and all(one.accepts(part) or accepts(part) for part in type_.types)

    return Described(f"nested tuple with any combination of {one.description} values", accepts)


def _tensors(name: str, kinds: Kinds, has_shape: Callable[[Tensor], bool] = lambda tensor: True) -> Described:
    def accepts(type_: Attribute) -> bool:
        if not isinstance(type_, TensorType):
            return False
        tensor = cast(Tensor, type_)
        return _holds(tensor.element_type, kinds) and has_shape(tensor) and _fits_levels(tensor)

    return Described(f"{name} of {_named(kinds)} values", accepts)


def _named(kinds: Kinds) -> str:
    return " or ".join(kind.description for kind in kinds)


def _holds(element_type: Attribute, kinds: Kinds) -> bool:
    return any(kind.accepts(element_type) for kind in kinds)


def _fits_levels(tensor: Tensor) -> bool:
    """Return whether a per-axis quantized tensor has one scale per index of the quantized dimension."""
    element_type = tensor.element_type
    if not isinstance(element_type, UniformQuantizedType) or (axis := element_type.data.axis) is None:
        return True
    shape = tensor.get_shape()
    return axis < len(shape) and shape[axis] in (DYNAMIC_INDEX, len(element_type.data.levels))


def _is_static_or_bounded(tensor: Tensor) -> bool:
    if tensor.has_static_shape():
        return True
    if not isinstance(tensor.encoding, BoundsAttr):
        return False
    bounded = sum(bound is not None for bound in tensor.encoding.data)
    return bounded == tensor.get_shape().count(DYNAMIC_INDEX) == 1


TENSOR = ranked(ALL)
UNQUANTIZED_TENSOR = ranked(UNQUANTIZED)
TENSOR_BY_AXIS = ranked(ALL_BY_AXIS)
"""Tensors that may be quantized per axis."""
STATIC_TENSOR = static(ALL)
STATIC_TENSOR_BY_AXIS = static(ALL_BY_AXIS)
STATIC_OR_BOUNDED = _tensors("statically shaped or single bounded dimension tensor", ALL_BY_AXIS, _is_static_or_bounded)
SCALAR = scalar(ALL)
PREDICATE = ranked(BOOLEANS)
I32_TENSOR = ranked(I32)
UI32_TENSOR = ranked(UI32)
DIMENSION_TENSOR = vector(DIMENSIONS)
STATIC_DIMENSION_TENSOR = static(DIMENSIONS, 1, "statically shaped 1-dimensional tensor")
STATIC_INTEGERS_1D = static(INTEGERS, 1, "statically shaped 1-dimensional integer tensor")
STATIC_INTEGERS_2D = static(INTEGERS, 2, "statically shaped 2-dimensional integer tensor")

ANY_TENSOR = any_rank(ALL_BY_AXIS)

TOKEN_TYPE = Described("token", lambda type_: isinstance(type_, TokenType))
FUTURE = Described("future", lambda type_: isinstance(type_, FutureType))
BUFFER = buffer(ALL)
QUANTIZED_BY_AXIS_TENSOR = ranked(QUANTIZED_BY_AXIS)
TUPLE = nested_tuple(TENSOR, BUFFER, QUANTIZED_BY_AXIS_TENSOR, TOKEN_TYPE)

TENSOR_OR_TOKEN = either(TENSOR, TOKEN_TYPE)
TENSOR_BY_AXIS_OR_TOKEN = either(TENSOR, QUANTIZED_BY_AXIS_TENSOR, TOKEN_TYPE)
TENSOR_TOKEN_OR_BUFFER = either(TENSOR_BY_AXIS_OR_TOKEN, BUFFER)
TENSOR_TOKEN_OR_TUPLE = either(TENSOR_BY_AXIS_OR_TOKEN, TUPLE)
TENSOR_TOKEN_TUPLE_OR_BUFFER = either(TENSOR_TOKEN_OR_TUPLE, BUFFER)
STATIC_TENSOR_OR_TOKEN = either(STATIC_TENSOR, STATIC_TENSOR_BY_AXIS, TOKEN_TYPE)
CUSTOM_CALL_VALUE = either(ANY_TENSOR, BUFFER, TOKEN_TYPE, nested_tuple(ANY_TENSOR, BUFFER, TOKEN_TYPE), FUTURE)
