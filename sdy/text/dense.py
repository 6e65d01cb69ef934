"""Dense constants: `dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>`, one value for all, or bytes in hexadecimal.

In the hexadecimal form, which MLIR prints past a hundred elements, each element takes whole bytes, the lowest first.
An integer narrower than a byte is extended with zeros there, and with its sign in memory.

Where one value stands for more elements than MLIR would list, it is kept once in memory as well, whatever the shape:
`DenseIntOrFPElementsAttr` then has the bytes of one element.
"""

import math
from collections.abc import Callable
from typing import Any, cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyDenseElement,
    AnyFloat,
    BytesAttr,
    ComplexType,
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerType,
    MemRefType,
    RankedStructure,
    TensorType,
    UnrankedTensorType,
    VectorType,
)
from xdsl.ir import Attribute
from xdsl.utils.lexer import Span
from xdsl.utils.mlir_lexer import MLIRTokenKind

from sdy.text.tokens import TokenParser

DenseType = RankedStructure[AnyDenseElement]

MOST_LISTED_ELEMENTS = 100
"""Up to this many elements MLIR prints a constant as a list, beyond it as bytes in hexadecimal."""


class DenseParser(TokenParser):
    """The part of the parser that reads dense constants."""

    def parse_dense_int_or_fp_elements_attr(self, type: DenseType | None) -> DenseIntOrFPElementsAttr:  # noqa: A002
        """A constant from its `<` on, with its type unless that is given."""
        self.parse_punctuation("<", " in dense attribute")
        start = self.pos
        match self._current_token.kind:
            case MLIRTokenKind.STRING_LIT:
                read = self._bytes_reader()
            case MLIRTokenKind.GREATER:
                read = self._elements_reader([], [0], start)
            case _:
                elements, shape = self._parse_tensor_literal()
                read = self._elements_reader([element.span for element in elements], shape, start)
        self.parse_punctuation(">", " in dense attribute")
        if type is None:
            self.parse_punctuation(":", " in dense attribute")
            type = self._dense_type(start)  # noqa: A001
        return read(type)

    def _dense_type(self, start: int) -> DenseType:
        given = self.parse_type()
        if not isinstance(given, TensorType | VectorType | MemRefType | UnrankedTensorType):
            self.raise_error("elements literal must be a shaped type", start)
        if isinstance(given, UnrankedTensorType) or DYNAMIC_INDEX in given.get_shape():
            self.raise_error("elements literal type must have static shape", start)
        element_type = cast(TensorType[Attribute], given).element_type
        if not isinstance(element_type, IntegerType | IndexType | AnyFloat | ComplexType):
            self.raise_error(f"elements of the type {element_type} cannot be given as numbers", start)
        return cast(DenseType, given)

    def _bytes_reader(self) -> Callable[[DenseType], DenseIntOrFPElementsAttr]:
        start = self.pos
        text = self._current_token.text[1:-1]
        self._consume_token()

        def read(dense_type: DenseType) -> DenseIntOrFPElementsAttr:
            if not text.startswith("0x"):
                self.raise_error("elements hex string should start with '0x'", start)
            try:
                data = bytes.fromhex(text[2:])
            except ValueError:
                self.raise_error("elements hex string only contains hex digits", start)
            element_type = dense_type.element_type
            size = element_type.compile_time_size
            if len(data) != size and len(data) != size * math.prod(dense_type.get_shape()):
                self.raise_error(f"elements hex data size is invalid for provided type: {dense_type}", start)
            if isinstance(element_type, IntegerType) and element_type.bitwidth < 8:
                data = data.translate(_sign_extended(element_type.bitwidth))
            return dense(dense_type, data)

        return read

    def _elements_reader(
        self, elements: list[Span[str]], shape: list[int], start: int
    ) -> Callable[[DenseType], DenseIntOrFPElementsAttr]:
        """`shape` is the one that the brackets tell: none for one value, which then stands for all elements."""

        def read(dense_type: DenseType) -> DenseIntOrFPElementsAttr:
            wanted = list(dense_type.get_shape())
            if shape and shape != wanted and (elements or math.prod(wanted)):
                self.raise_error(
                    f"inferred shape of elements literal ({_dimensions(shape)}) "
                    f"does not match type ({_dimensions(wanted)})",
                    start,
                )
            read_one = self._element_reader(dense_type.element_type)
            values = cast(Any, [read_one(element) for element in elements])
            if isinstance(element_type := dense_type.element_type, IntegerType):
                values = [element_type.get_normalized_value(value) for value in values]
            return dense(dense_type, cast(Any, element_type).pack(values))

        return read

    def _element_reader(self, element_type: AnyDenseElement) -> Callable[[Span[str]], Any]:
        if isinstance(element_type, ComplexType):
            read_part = self._element_reader(element_type.element_type)
            return lambda element: tuple(map(read_part, self._parts(element)))
        if isinstance(element_type, IntegerType | IndexType):
            return lambda element: self._read_integer(element, element_type)
        return lambda element: self._read_float(element, element_type)

    def _parts(self, element: Span[str]) -> tuple[Span[str], Span[str]]:
        comma = element.text.find(",")
        if comma == -1:
            self.raise_error("expected a complex number", element)
        middle = element.start + comma
        source = element.input
        return Span(element.start + 1, middle, source), Span(middle + 1, element.end - 1, source)

    def _read_integer(self, element: Span[str], element_type: IntegerType | IndexType) -> int:
        text = element.text.strip()
        if text in ("true", "false"):
            if element_type != IntegerType(1):
                self.raise_error("expected i1 type for 'true' or 'false' values", element)
            return int(text == "true")
        if "." in text:
            self.raise_error("expected integer elements, but parsed floating-point", element)
        value = int(text.replace(" ", ""), 0)
        if isinstance(element_type, IntegerType) and element_type.normalized_value(value) is None:
            self.raise_error("integer constant out of range for type", element)
        return value

    def _read_float(self, element: Span[str], element_type: AnyFloat) -> float:
        text = element.text.strip().replace(" ", "")
        if "0x" in text:
            return self.float_of_bits(text, element_type, element)
        if "." not in text:
            self.raise_error("expected floating-point elements, but parsed integer", element)
        return float(text)

    def float_of_bits(self, text: str, float_type: AnyFloat, where: Span[str]) -> float:
        """The number whose bits are written in hexadecimal."""
        size = float_type.compile_time_size
        bits = int(text, 16)
        if not 0 <= bits < 1 << 8 * size:
            self.raise_error("hexadecimal float constant out of range for type", where)
        return float_type.unpack(bits.to_bytes(size, "little"), 1)[0]


def dense(dense_type: DenseType, data: bytes) -> DenseIntOrFPElementsAttr:
    """A constant of the elements whose bytes are given, or with the bytes of one element for all."""
    count = math.prod(dense_type.get_shape())
    element = data[: dense_type.element_type.compile_time_size]
    if is_repeated(element, data):
        # MLIR knows the one value of a tensor without elements, too.
        data = element * count if 0 < count <= MOST_LISTED_ELEMENTS else element
    return DenseIntOrFPElementsAttr(cast(Any, dense_type), BytesAttr(data))


def is_repeated(element: bytes, data: bytes) -> bool:
    """Whether `data` is `element` again and again, at least once."""
    return bool(data) and data.startswith(element) and data[len(element) :] == data[: -len(element)]


def _sign_extended(bits: int) -> bytes:
    """For each byte, the byte whose lowest `bits` are extended with their sign."""
    sign, mask = 1 << (bits - 1), (1 << bits) - 1
    return bytes((((byte & mask) ^ sign) - sign) & 0xFF for byte in range(256))


def hexadecimal(attribute: DenseIntOrFPElementsAttr) -> str:
    """The bytes of a constant as MLIR prints them, without quotes."""
    data = attribute.data.data
    element_type = attribute.get_element_type()
    if isinstance(element_type, IntegerType) and element_type.bitwidth < 8:
        mask = (1 << element_type.bitwidth) - 1
        data = data.translate(bytes(byte & mask for byte in range(256)))
    return f"0x{data.hex().upper()}"


def _dimensions(shape: list[int]) -> str:
    return f"[{', '.join(map(str, shape))}]"
