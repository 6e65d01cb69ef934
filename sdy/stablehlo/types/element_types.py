"""Sets of element types with MLIR's descriptions; `tensor_types` builds constraints on tensors from them."""

from collections.abc import Callable
from typing import NamedTuple

from xdsl.dialects.builtin import (
    BFloat16Type,
    ComplexType,
    Float4E2M1FNType,
    Float6E2M3FNType,
    Float6E3M2FNType,
    Float8E3M4Type,
    Float8E4M3B11FNUZType,
    Float8E4M3FNType,
    Float8E4M3FNUZType,
    Float8E4M3Type,
    Float8E5M2FNUZType,
    Float8E5M2Type,
    Float8E8M0FNUType,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    Signedness,
    i1,
    i32,
)
from xdsl.ir import Attribute

from sdy.stablehlo.types.quantized import UniformQuantizedType


class Elements(NamedTuple):
    """A set of element types with its description in error messages."""

    description: str
    accepts: Callable[[Attribute], bool]


_WIDTHS = (2, 4, 8, 16, 32, 64)
_QUANTIZED_WIDTHS = (2, 4, 8, 16, 32)
_QUANTIZED_PREFIXES = ("i", "u", "ui")
_SIGNLESS = frozenset(IntegerType(width) for width in _WIDTHS)
_UNSIGNED = frozenset(IntegerType(width, Signedness.UNSIGNED) for width in _WIDTHS)
_UI32 = IntegerType(32, Signedness.UNSIGNED)
_FLOATS = {
    Float4E2M1FNType,
    Float6E2M3FNType,
    Float6E3M2FNType,
    Float8E3M4Type,
    Float8E4M3B11FNUZType,
    Float8E4M3FNType,
    Float8E4M3FNUZType,
    Float8E4M3Type,
    Float8E5M2FNUZType,
    Float8E5M2Type,
    Float8E8M0FNUType,
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
}
_PRECISE_FLOATS = {Float32Type, Float64Type}


def _is_boolean(type_: Attribute) -> bool:
    return type_ == i1


def _is_integer(type_: Attribute) -> bool:
    return type_ in _SIGNLESS or type_ in _UNSIGNED


def _is_signless(type_: Attribute) -> bool:
    return type_ in _SIGNLESS


def _is_float(type_: Attribute) -> bool:
    return type_.__class__ in _FLOATS  # `isinstance` is slow on abstract classes when the answer is no


def _is_precise_float(type_: Attribute) -> bool:
    return type_.__class__ in _PRECISE_FLOATS


def _is_complex(type_: Attribute) -> bool:
    return isinstance(type_, ComplexType) and _is_precise_float(type_.parameters[0])


def _is_quantized(type_: Attribute) -> bool:
    if not isinstance(type_, UniformQuantizedType):
        return False
    quantization, storage = type_.data, type_.data.storage
    has_storage = storage.prefix in _QUANTIZED_PREFIXES and storage.bits in _QUANTIZED_WIDTHS
    is_by_block = quantization.blocks is not None
    return (
        has_storage
        and not is_by_block
        and all(storage.low <= zero_point <= storage.high for _, zero_point in quantization.levels)
    )


def _is_quantized_by_tensor(type_: Attribute) -> bool:
    return isinstance(type_, UniformQuantizedType) and type_.data.axis is None and _is_quantized(type_)


def _is_quantized_by_axis(type_: Attribute) -> bool:
    return isinstance(type_, UniformQuantizedType) and type_.data.axis is not None and _is_quantized(type_)


def _is_i32(type_: Attribute) -> bool:
    return type_ == i32


def _is_ui32(type_: Attribute) -> bool:
    return type_ == _UI32


def _is_index(type_: Attribute) -> bool:
    return isinstance(type_, IndexType)


def _is_any_integer_or_index(type_: Attribute) -> bool:
    return isinstance(type_, IntegerType | IndexType)


BOOLEANS = (Elements("bool", _is_boolean),)
INTEGERS = (Elements("2/4/8/16/32/64-bit integer", _is_integer),)
SIGNLESS = (Elements("2/4/8/16/32/64-bit signless integer", _is_signless),)
I32 = (Elements("32-bit signless integer", _is_i32),)
UI32 = (Elements("32-bit unsigned integer", _is_ui32),)
INDEX = (Elements("index", _is_index),)
ANY_INTEGERS = (Elements("integer or index", _is_any_integer_or_index),)
FLOATS = (Elements("4/6/8/16/32/64-bit float", _is_float),)
PRECISE_FLOATS = (Elements("32/64-bit float", _is_precise_float),)
COMPLEX = (Elements("complex type with 32/64-bit float elements", _is_complex),)
QUANTIZED = (Elements("per-tensor integer quantized", _is_quantized_by_tensor),)
QUANTIZED_BY_AXIS = (Elements("per-axis integer quantized", _is_quantized_by_axis),)

BITS = BOOLEANS + INTEGERS
DIMENSIONS = INDEX + INTEGERS
INEXACT = FLOATS + COMPLEX
ROUNDABLE = FLOATS + QUANTIZED
CONTINUOUS = FLOATS + COMPLEX + QUANTIZED
NUMBERS = INTEGERS + CONTINUOUS
SIGNED_NUMBERS = SIGNLESS + CONTINUOUS
REAL_NUMBERS = INTEGERS + FLOATS
REAL = BOOLEANS + REAL_NUMBERS
UNQUANTIZED = FLOATS + BOOLEANS + INTEGERS + COMPLEX
ALL = UNQUANTIZED + QUANTIZED
ALL_BY_AXIS = ALL + QUANTIZED_BY_AXIS
