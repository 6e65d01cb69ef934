"""Which element types an operation takes, said as MLIR says it."""

from collections.abc import Callable
from typing import NamedTuple

from xdsl.dialects.builtin import ComplexType, IndexType, IntegerType, i1
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from sdy.stablehlo.shape_checks import tensor_type


class Elements(NamedTuple):
    """A kind of element types."""

    description: str
    accepts: Callable[[Attribute], bool]


_SIGNLESS = frozenset(IntegerType(width) for width in (2, 4, 8, 16, 32, 64))


def _is_boolean(type_: Attribute) -> bool:
    return type_ == i1


def _is_integer(type_: Attribute) -> bool:
    return isinstance(type_, IntegerType) and type_ != i1


def _is_signless(type_: Attribute) -> bool:
    return type_ in _SIGNLESS


def _is_quantized(type_: Attribute) -> bool:
    return type_.name.startswith("quant.")


def _is_float(type_: Attribute) -> bool:
    return not isinstance(type_, IntegerType | IndexType | ComplexType) and not _is_quantized(type_)


def _is_complex(type_: Attribute) -> bool:
    return isinstance(type_, ComplexType)


BOOLEANS = (Elements("bool", _is_boolean),)
INTEGERS = (Elements("2/4/8/16/32/64-bit integer", _is_integer),)
BITS = BOOLEANS + INTEGERS
FLOATS = (Elements("4/6/8/16/32/64-bit float", _is_float),)
QUANTIZED = Elements("per-tensor integer quantized", _is_quantized)
COMPLEX = (Elements("complex type with 32/64-bit float elements", _is_complex),)
ROUNDABLE = (*FLOATS, QUANTIZED)
CONTINUOUS = (*FLOATS, *COMPLEX, QUANTIZED)
NUMBERS = INTEGERS + CONTINUOUS
SIGNED_NUMBERS = (Elements("2/4/8/16/32/64-bit signless integer", _is_signless), *CONTINUOUS)


def verify_elements(place: str, value: SSAValue, kinds: tuple[Elements, ...]) -> None:
    """Refuse a value whose elements are of none of these kinds; `place` is where it stands, `operand #0`."""
    element_type = tensor_type(value).element_type
    if not any(kind.accepts(element_type) for kind in kinds):
        described = " or ".join(kind.description for kind in kinds)
        raise VerifyException(f"{place} must be ranked tensor of {described} values, but got '{value.type}'")
