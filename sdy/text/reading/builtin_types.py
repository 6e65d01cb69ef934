"""The parser of parametrized builtin types: `tensor<2x?xf32>`, `complex<f32>`, `tuple<i32, f32>`, `(f32) -> f32`."""

import re
from typing import Any, cast

from xdsl.dialects.builtin import (
    AnyFloat,
    ComplexType,
    FunctionType,
    IndexType,
    IntegerType,
    MemRefType,
    NoneAttr,
    NoneType,
    TensorType,
    TupleType,
    UnrankedMemRefType,
    UnrankedTensorType,
)
from xdsl.ir import Attribute, TypeAttribute
from xdsl.utils.mlir_lexer import MLIRTokenKind

from sdy.text.reading.tokens import TokenParser

AnyInteger = IntegerType[Any, Any]
_INTEGER_TYPE = re.compile(r"[su]?i([0-9]+)", re.ASCII)
_LARGEST_WIDTH = 2**24 - 1
"""The largest width of an integer type, in bits."""
_MAX_WIDTH_DIGITS = 10
_LARGEST_DIMENSION = (1 << 63) - 1
_NEVER_IN_TENSORS = (FunctionType, MemRefType, NoneType, TensorType, TupleType, UnrankedMemRefType, UnrankedTensorType)


class TypeParser(TokenParser):
    """Mixin of the parser for builtin types."""

    def parse_optional_function_type(self) -> FunctionType | None:
        """Parse `(inputs) -> outputs`, if it starts here."""
        if self.current_token.kind is not MLIRTokenKind.L_PAREN:
            return None
        inputs = self.parse_comma_separated_list(self.Delimiter.PAREN, self.parse_type)
        self.parse_punctuation("->", " in function type")
        outputs = self.parse_optional_comma_separated_list(self.Delimiter.PAREN, self.parse_type)
        return FunctionType.from_lists(inputs, [self.parse_type()] if outputs is None else outputs)

    def parse_function_type(self) -> FunctionType:
        """Parse `(inputs) -> outputs`. Raises ParseError for any other type."""
        start = self.pos
        function_type = self.parse_type()
        if not isinstance(function_type, FunctionType):
            self.raise_error("expected function type", start)
        return function_type

    def parse_optional_integer_or_float_type(self) -> TypeAttribute | None:
        """Parse an integer or float type, if one starts here. Raises ParseError if an integer type is too wide."""
        if (match := _INTEGER_TYPE.fullmatch(self.current_token.text)) is not None:
            digits = match[1]
            if len(digits) > _MAX_WIDTH_DIGITS or int(digits) >= 1 << 32:
                self.raise_error("invalid integer width", self.pos)
            if int(digits) > _LARGEST_WIDTH:
                self.raise_error(f"integer bitwidth is limited to {_LARGEST_WIDTH} bits", self.pos)
        return super().parse_optional_integer_or_float_type()

    def parse_optional_builtin_parametrized_type(self) -> TypeAttribute | None:
        parse = {
            "complex": self._parse_complex,
            "memref": self._parse_memref,
            "tensor": self._parse_tensor,
            "tuple": self._parse_tuple,
            "vector": self._parse_vector,
        }.get(self.current_token.text)
        if parse is None:
            return None
        name, start = self.current_token.text, self.pos
        self.consume_token(MLIRTokenKind.BARE_IDENT)
        self.parse_punctuation("<", f" in {name} type")
        return parse(start)

    def _parse_complex(self, _start: int) -> TypeAttribute:
        element_start = self.pos
        element_type = self.parse_type()
        self.parse_punctuation(">", " in complex type")
        if not isinstance(element_type, AnyFloat | IntegerType):
            self.raise_error("invalid element type for complex", element_start)
        return cast(TypeAttribute, ComplexType(cast(AnyFloat | AnyInteger, element_type)))

    def _parse_memref(self, _start: int) -> TypeAttribute:
        memref = self.parse_memref_attrs()
        self.parse_punctuation(">", " in memref type")
        return memref

    def _parse_tuple(self, _start: int) -> TypeAttribute:
        if self.parse_optional_punctuation(">") is not None:
            return TupleType(())
        types = self.parse_comma_separated_list(self.Delimiter.NONE, self.parse_type)
        self.parse_punctuation(">", " in tuple type")
        return TupleType(tuple(types))

    def _parse_vector(self, start: int) -> TypeAttribute:
        vector = self.parse_vector_attrs()
        self.parse_punctuation(">", " in vector type")
        if not isinstance(vector.element_type, AnyFloat | IntegerType | IndexType):
            message = "failed to verify 'elementType': VectorElementTypeInterface instance"
            self.raise_error(message, start)
        if 0 in vector.get_shape():
            self.raise_error("vector types must have positive constant sizes but got 0", start)
        return vector

    def _parse_tensor(self, _start: int) -> TypeAttribute:
        tensor = self.parse_tensor_attrs()
        self.parse_punctuation(">", " in tensor type")
        return tensor

    def parse_tensor_attrs(self) -> TensorType[Attribute] | UnrankedTensorType[Attribute]:
        is_ranked = self.parse_optional_punctuation("*") is None
        shape: list[int] = []
        if is_ranked:
            shape = self.parse_dimensions()
        else:
            self.parse_shape_delimiter()
        element_start = self.pos
        element_type = self.parse_type()
        encoding: Attribute = NoneAttr()
        if self.parse_optional_punctuation(",") is not None:
            encoding = self.parse_optional_attribute() or encoding
        if isinstance(element_type, _NEVER_IN_TENSORS):
            self.raise_error("invalid tensor element type", element_start)
        if is_ranked:
            return TensorType(element_type, shape, encoding)
        if not isinstance(encoding, NoneAttr):
            self.raise_error("cannot apply encoding to unranked tensor", self.pos)
        return UnrankedTensorType(element_type)

    def parse_dimensions(self) -> list[int]:
        """Parse dimensions, each followed by an `x`: `2x?x`."""
        dimensions: list[int] = []
        while self.current_token.kind in (MLIRTokenKind.INTEGER_LIT, MLIRTokenKind.QUESTION):
            dimensions.append(self.parse_shape_dimension())
            self.parse_shape_delimiter()
        return dimensions

    def parse_shape_dimension(self, allow_dynamic: bool = True) -> int:
        """Parse the size of a dimension, DYNAMIC_INDEX for `?`. Raises ParseError for a size over 63 bits."""
        start = self.pos
        size = super().parse_shape_dimension(allow_dynamic)
        if size > _LARGEST_DIMENSION:
            self.raise_error("invalid dimension", start)
        return size

    def parse_shape_delimiter(self) -> None:
        """Parse the `x` after a dimension. Raises ParseError if another token is next."""
        if self.parse_optional_shape_delimiter() is None:
            self.raise_error("expected 'x' in dimension list")
