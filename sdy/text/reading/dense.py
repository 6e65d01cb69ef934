"""The parser of dense constants: elements, `dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>`, a splat, or hexadecimal bytes.

In the hexadecimal form, which MLIR prints for more than a hundred elements, each element takes a whole number of bytes,
little-endian. An integer narrower than a byte is zero-extended there, and sign-extended in memory.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    ComplexType,
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerType,
    MemRefType,
    TensorType,
    UnrankedTensorType,
    VectorType,
)
from xdsl.ir import Attribute
from xdsl.utils.mlir_lexer import MLIRTokenKind

from sdy.ir.elements import DenseType, dense
from sdy.text.reading.numbers import Literal, NumberParser, is_unsigned


class DenseParser(NumberParser):
    """Mixin of the parser for dense constants."""

    def parse_dense_int_or_fp_elements_attr(self, type: DenseType | None) -> DenseIntOrFPElementsAttr:  # noqa: A002
        """Parse a constant from its `<` on, including its type unless `type` is passed."""
        literal_start = self._literal_start()
        self.parse_punctuation("<", " after 'dense'")
        match self.current_token.kind:
            case MLIRTokenKind.STRING_LIT:
                build = self._bytes_builder(literal_start)
            case MLIRTokenKind.GREATER:
                build = self._elements_builder([], [], literal_start)
            case _:
                elements: list[Literal] = []
                shape = self._parse_elements(elements)
                build = self._elements_builder(elements, shape, literal_start)
        self.parse_punctuation(">")
        if type is None:
            self.parse_punctuation(":")
            type = self._dense_type(literal_start)  # noqa: A001
        return build(type)

    def _literal_start(self) -> int:
        """Return the offset of the preceding word `dense`."""
        return self.lexer.input.content.rfind("dense", 0, self.pos)

    def _dense_type(self, start: int) -> DenseType:
        shaped_type = self.parse_type()
        if not isinstance(shaped_type, TensorType | VectorType | MemRefType | UnrankedTensorType):
            self.raise_error("elements literal must be a shaped type", start)
        if isinstance(shaped_type, UnrankedTensorType) or DYNAMIC_INDEX in shaped_type.get_shape():
            self.raise_error("elements literal type must have static shape", start)
        element_type = cast(TensorType[Attribute], shaped_type).element_type
        if not isinstance(element_type, IntegerType | IndexType | AnyFloat | ComplexType):
            self.raise_error(f"elements of type '{element_type}' cannot be written as numbers", start)
        self.check_stored(element_type, start)
        return cast(DenseType, shaped_type)

    def _bytes_builder(self, start: int) -> Callable[[DenseType], DenseIntOrFPElementsAttr]:
        text_start = self.pos
        text = self.current_token.text[1:-1]
        self.consume_token()

        def build(dense_type: DenseType) -> DenseIntOrFPElementsAttr:
            data = None
            if text.startswith("0x"):
                with suppress(ValueError):
                    data = bytes.fromhex(text[2:])
            if data is None:
                self.raise_error("expected string containing hex digits starting with `0x`", text_start)
            element_type = dense_type.element_type
            size = element_type.compile_time_size
            if len(data) != size and len(data) != size * math.prod(dense_type.get_shape()):
                self.raise_error(f"elements hex data size is invalid for provided type: '{dense_type}'", start)
            if isinstance(element_type, IntegerType) and element_type.bitwidth < 8:
                data = data.translate(_sign_extended(element_type.bitwidth))
            return dense(dense_type, data)

        return build

    def _parse_elements(self, elements: list[Literal]) -> list[int]:
        """Append the literals to `elements` and return the shape given by the brackets."""
        if self.current_token.kind is not MLIRTokenKind.L_SQUARE:
            self._parse_element(elements)
            return []
        shapes: list[list[int]] = []

        def parse_part() -> None:
            shapes.append(self._parse_elements(elements))
            if shapes[-1] != shapes[0]:
                message = "tensor literal is invalid; ranks are not consistent between elements"
                self.raise_error(message, self.pos)

        self.parse_comma_separated_list(self.Delimiter.SQUARE, parse_part)
        return [len(shapes), *(shapes[0] if shapes else ())]

    def _parse_element(self, elements: list[Literal]) -> None:
        if self.parse_optional_punctuation("(") is not None:
            self._parse_elements(elements)
            self.parse_punctuation(",", " between complex elements")
            self._parse_elements(elements)
            self.parse_punctuation(")", " after complex elements")
            return
        literal = self.parse_optional_literal("expected integer or floating point literal")
        if literal is None:
            self.raise_error("expected element literal of primitive type", self.pos)
        elements.append(literal)

    def _elements_builder(
        self, elements: list[Literal], shape: list[int], start: int
    ) -> Callable[[DenseType], DenseIntOrFPElementsAttr]:
        """Return a function that builds the constant; `shape` is given by the brackets, empty for a splat."""

        def build(dense_type: DenseType) -> DenseIntOrFPElementsAttr:
            self._check_number(elements, shape, dense_type, start)
            element_type = dense_type.element_type
            values: Any
            if isinstance(element_type, ComplexType):
                parts = [self._value(element, element_type.element_type) for element in elements]
                values = [*zip(parts[::2], parts[1::2], strict=True)]
            else:
                values = [self._value(element, element_type) for element in elements]
            return dense(dense_type, cast(Any, element_type).pack(values))

        return build

    def _check_number(self, elements: list[Literal], shape: list[int], dense_type: DenseType, start: int) -> None:
        type_shape = list(dense_type.get_shape())
        count = math.prod(type_shape)
        if shape and shape != type_shape:
            self.raise_error(
                f"inferred shape of elements literal ({_dimensions(shape)}) "
                f"does not match type ({_dimensions(type_shape)})",
                start,
            )
        if not elements and count:
            self.raise_error(f"parsed zero elements, but type ('{dense_type}') expected at least 1", start)
        if isinstance(dense_type.element_type, ComplexType) and count:
            expected = 2 * count if shape else 2
            if len(elements) != expected:
                what = dense_type if shape else dense_type.element_type
                self.raise_error(
                    f"parsed {len(elements)} elements, but type ('{what}') expected {expected} elements", start
                )

    def _value(self, literal: Literal, element_type: IntegerType | IndexType | AnyFloat) -> int | float:
        if isinstance(element_type, AnyFloat):
            return self.float_of(literal, element_type)
        if literal.is_negative and is_unsigned(element_type):
            self.raise_error("expected unsigned integer elements, but parsed negative value", literal.start)
        if literal.is_float:
            self.raise_error("expected integer elements, but parsed floating-point", literal.start)
        if literal.is_boolean:
            if element_type != IntegerType(1):
                self.raise_error("expected i1 type for 'true' or 'false' values", literal.start)
            return -int(literal.text == "true")
        value = self.integer_of(literal, element_type, "for type")
        return element_type.get_normalized_value(value) if isinstance(element_type, IntegerType) else value


def _sign_extended(bits: int) -> bytes:
    """Return a translation table of bytes that sign-extends their lowest `bits`."""
    sign, mask = 1 << (bits - 1), (1 << bits) - 1
    return bytes((((byte & mask) ^ sign) - sign) & 0xFF for byte in range(256))


def _dimensions(shape: list[int]) -> str:
    return f"[{', '.join(map(str, shape))}]"
