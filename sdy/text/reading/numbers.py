"""The parser of numbers, `1 : i32`, `0x7FC00000 : f32`, `true`, and of dense arrays, `array<i64: 1, 2>`."""

import math
import struct
from decimal import Decimal
from typing import Any, NamedTuple, cast

from xdsl.dialects.builtin import (
    AnyFloat,
    DenseArrayBase,
    Float16Type,
    Float32Type,
    Float80Type,
    Float128Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    Signedness,
    f64,
    i64,
)
from xdsl.ir import Attribute
from xdsl.utils.mlir_lexer import MLIRTokenKind

from sdy.text.reading.builtin_types import AnyInteger
from sdy.text.reading.lexer import LazyToken
from sdy.text.reading.tokens import TokenParser, integer_value


class Literal(NamedTuple):
    """A literal number or boolean, with the offset after its sign."""

    text: str
    is_negative: bool
    start: int

    @property
    def is_boolean(self) -> bool:
        """True for the literals `true` and `false`."""
        return self.text in _BOOLEANS

    @property
    def is_float(self) -> bool:
        """True if the literal has a decimal point."""
        return "." in self.text


_NUMBERS = (MLIRTokenKind.INTEGER_LIT, MLIRTokenKind.FLOAT_LIT)
_BOOLEANS = {"true": 1, "false": 0}
_INDEX_BITS = 64
_ARRAY_BITS = (1, 8, 16, 32, 64)
"""The widths of integers in dense arrays."""
_ROUNDED_TO_INFINITY: dict[type[Attribute], float] = {
    Float16Type: float.fromhex("0x1.ffep15"),
    Float32Type: float.fromhex("0x1.ffffffp127"),
}
"""The least value that rounds to infinity, by the types that `struct.pack` refuses to round."""

_STEPS_BETWEEN_MIDDLES = 1 << 53 - 25
"""The distance of adjacent numbers with 25 significant bits, in units in the last place of a double."""


def is_unsigned(type_: IntegerType | IndexType) -> bool:
    """Return whether a type is an unsigned integer type, such as `ui8`."""
    return isinstance(type_, IntegerType) and type_.signedness.data is Signedness.UNSIGNED


def _without_double_rounding(text: str) -> float:
    """Return a double that rounds to 24 bits or fewer exactly as the decimal number `text` does.

    It is the nearest double, unless that lies exactly midway between two narrower numbers and the decimal number does
    not; then it is the next double towards the decimal number. This avoids double rounding.
    """
    nearest = float(text)
    (bits,) = struct.unpack("<Q", struct.pack("<d", nearest))
    if bits % _STEPS_BETWEEN_MIDDLES or not math.isfinite(nearest) or nearest == 0:
        return nearest
    written, middle = Decimal(text), Decimal(nearest)
    return nearest if written == middle else math.nextafter(nearest, math.inf if written > middle else -math.inf)


class NumberParser(TokenParser):
    """Mixin of the parser for numbers."""

    def parse_optional_builtin_int_or_float_attr(self) -> IntegerAttr | FloatAttr | None:
        """Parse a number with its type, or a boolean, if one starts here."""
        literal = self.parse_optional_literal()
        if literal is None:
            return None
        if literal.is_boolean:
            return IntegerAttr(_BOOLEANS[literal.text], IntegerType(1))
        type_: Attribute = f64 if literal.is_float else i64
        if self.parse_optional_punctuation(":") is not None:
            type_ = self.parse_type()
        if isinstance(type_, AnyFloat):
            self.check_stored(type_, literal.start)
            return FloatAttr(self.float_of(literal, type_), type_)
        if literal.is_float:
            self.raise_error("floating point value not valid for specified type", self.pos)
        if not isinstance(type_, IntegerType | IndexType):
            self.raise_error("integer literal not valid for specified type", literal.start)
        integer_type = cast(AnyInteger | IndexType, type_)
        if literal.is_negative and is_unsigned(integer_type):
            self.raise_error("negative integer literal not valid for unsigned integer type", literal.start)
        return cast(IntegerAttr, IntegerAttr(self.integer_of(literal, integer_type, "for attribute"), integer_type))

    def parse_optional_literal(
        self, after_minus: str = "expected constant integer or floating point value"
    ) -> Literal | None:
        """Parse a number or a boolean, if one starts here. Raises ParseError if no number follows a minus."""
        is_negative = self.parse_optional_punctuation("-") is not None
        token = cast(LazyToken, self.current_token)
        if token.kind in _NUMBERS or (not is_negative and token.text in _BOOLEANS):
            self.consume_token()
            return Literal(token.text, is_negative, token.start)
        if is_negative:
            self.raise_error(after_minus, token.start)
        return None

    def check_stored(self, type_: Any, start: int) -> None:
        """Raise ParseError if constants of this element type are not supported: f80, f128 and wide integers."""
        is_wide = isinstance(type_, IntegerType) and type_.bitwidth > _ARRAY_BITS[-1]
        if is_wide or isinstance(type_, Float80Type | Float128Type):
            self.raise_error(f"constants of type '{type_}' are not supported", start)

    def integer_of(self, literal: Literal, type_: IntegerType | IndexType, what: str) -> int:
        """Return the value of an integer literal. Raises ParseError if it is out of the type's range."""
        value = self.integer_in_range(literal, type_)
        if value is None:
            self.raise_error(f"integer constant out of range {what}", literal.start)
        return value

    def integer_in_range(self, literal: Literal, type_: IntegerType | IndexType) -> int | None:
        """Return the value of an integer literal, None if it is out of the type's range."""
        value = integer_value(literal.text)
        bits = _INDEX_BITS if isinstance(type_, IndexType) else type_.bitwidth
        has_sign = isinstance(type_, IndexType) or type_.signedness.data is Signedness.SIGNED
        if literal.is_negative:
            return -value if 0 < value <= 1 << bits - 1 else None
        return value if value < 1 << (bits - has_sign) else None

    def float_of(self, literal: Literal, type_: AnyFloat) -> float:
        """Return the value of a decimal literal with a point, or of the hexadecimal bits of a float.

        Raises ParseError for other literals.
        """
        if literal.is_float:
            value = float(literal.text) if type_ == f64 else _without_double_rounding(literal.text)
            value = math.inf if value >= _ROUNDED_TO_INFINITY.get(type_.__class__, math.inf) else value
            return -value if literal.is_negative else value
        if literal.is_boolean:
            self.raise_error("expected floating point literal", literal.start)
        if not literal.text.startswith("0x"):
            raise self.error_at(
                literal.start,
                "unexpected decimal integer literal for a floating point value",
                "add a trailing dot to make the literal a float",
            )
        if literal.is_negative:
            self.raise_error("hexadecimal float literal should not have a leading minus", literal.start)
        bits = int(literal.text, 16)
        if bits >= 1 << 8 * type_.compile_time_size:
            self.raise_error("hexadecimal float constant out of range for type", literal.start)
        return type_.unpack(bits.to_bytes(type_.compile_time_size, "little"), 1)[0]

    # Arrays

    def parse_builtin_densearray_attr(self) -> DenseArrayBase:
        self.parse_punctuation("<", " after 'array'")
        start = self.pos
        type_ = self.parse_type()
        if not isinstance(type_, IntegerType | AnyFloat):
            self.raise_error(f"expected integer or float type, got: '{type_}'", start)
        self.check_stored(type_, start)
        if isinstance(type_, IntegerType) and type_.bitwidth not in _ARRAY_BITS:
            if type_.bitwidth % 8:
                self.raise_error("element type bitwidth must be a multiple of 8", start)
            self.raise_error(f"arrays of type '{type_}' are not supported", start)
        values: list[Any] = []
        if self.parse_optional_punctuation(">") is None:
            self.parse_punctuation(":", " after dense array type")
            read = self._array_integer if isinstance(type_, IntegerType) else self._array_float
            values = self.parse_comma_separated_list(self.Delimiter.NONE, lambda: read(cast(Any, type_)))
            self.parse_punctuation(">", " to close an array attribute")
        return DenseArrayBase.from_list(cast(Any, type_), values)

    def _array_integer(self, type_: IntegerType) -> int:
        start = self.pos
        literal = self.parse_optional_literal("expected integer literal")
        if literal is None or literal.is_float:
            self.raise_error("expected integer literal", start)
        if literal.is_boolean:
            if type_ != IntegerType(1):
                self.raise_error("expected i1 type for 'true' or 'false' values", start)
            return _BOOLEANS[literal.text]
        if type_ == IntegerType(1):
            self.raise_error("expected 'true' or 'false' values for i1 type", start)
        value = self.integer_in_range(literal, type_)
        if value is None:
            self.raise_error("integer constant out of range", self.pos)
        normalized = type_.normalized_value(value)
        return value if normalized is None else normalized

    def _array_float(self, type_: AnyFloat) -> float:
        literal = self.parse_optional_literal("expected floating point literal")
        if literal is None:
            self.raise_error("expected floating point literal", self.pos)
        return self.float_of(literal, type_)
