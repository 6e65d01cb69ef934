"""Reading the builtin types and attributes that xDSL reads in another way than MLIR, or not at all.

memref<4xf32, affine_map<(d0) -> (d0)>, 0>    is memref<4xf32>
array<f32: 0x7FC00000>                        numbers by their bits
dense_resource<"a b">                         keys that are no identifiers
tensor<?xf32, #stablehlo.bounds<4>>           encodings that are not for all tensors
!foo<"anything" [at] all>                     types and attributes of dialects that are not known
"""

import re

from xdsl.dialect_interfaces.op_asm import OpAsmDialectInterface
from xdsl.dialects.builtin import (
    AffineMapAttr,
    AnyFloat,
    DenseArrayBase,
    IntegerAttr,
    MemRefType,
    NoneAttr,
    TensorType,
    UnrankedMemRefType,
    UnrankedTensorType,
    UnregisteredAttr,
    i64,
)
from xdsl.ir import Attribute
from xdsl.ir.affine import AffineMap
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.mlir_lexer import MLIRTokenKind

from sdy.diagnostics import warn
from sdy.text.dense import DenseParser
from sdy.text.encoding import TensorEncoding

_SYMBOL_NAME = re.compile(r"[A-Za-z][\w.]*+|")
_DEFAULT_MEMORY_SPACE = IntegerAttr(0, i64)


class BuiltinSyntaxParser(DenseParser):
    """The part of the parser that reads builtin types and attributes."""

    def _parse_memref_attrs(self) -> MemRefType | UnrankedMemRefType:
        """A memref, without the layout and the memory space that go without saying."""
        memref = super()._parse_memref_attrs()
        space = NoneAttr() if memref.memory_space == _DEFAULT_MEMORY_SPACE else memref.memory_space
        if isinstance(memref, UnrankedMemRefType):
            return UnrankedMemRefType.from_type(memref.element_type, space)
        is_identity = memref.layout == AffineMapAttr(AffineMap.identity(len(memref.shape)))
        return MemRefType(memref.element_type, memref.shape, NoneAttr() if is_identity else memref.layout, space)

    def _parse_tensor_attrs(self) -> TensorType[Attribute] | UnrankedTensorType[Attribute]:
        """A tensor, if its encoding is for such tensors."""
        start = self.pos
        tensor: TensorType[Attribute] | UnrankedTensorType[Attribute] = super()._parse_tensor_attrs()
        if isinstance(tensor, TensorType) and isinstance(tensor.encoding, TensorEncoding):
            try:
                tensor.encoding.verify_encoding(TensorType(tensor.element_type, tensor.shape))
            except VerifyException as problem:
                self.raise_error(str(problem), start)
        return tensor

    def _parse_builtin_densearray_attr(self) -> DenseArrayBase | None:
        start = self._current_token
        self.parse_punctuation("<", " in dense array")
        element_type = self.parse_optional_type()
        if not isinstance(element_type, AnyFloat):
            self._resume_from(start.span.start)
            return super()._parse_builtin_densearray_attr()
        values: list[float] = []
        if self.parse_optional_punctuation(":") is not None:
            values = self.parse_comma_separated_list(self.Delimiter.NONE, lambda: self._parse_float_of(element_type))
        self.parse_punctuation(">", " in dense array")
        return DenseArrayBase.from_list(element_type, values)

    def _parse_float_of(self, float_type: AnyFloat) -> float:
        token = self._current_token
        if token.kind is MLIRTokenKind.INTEGER_LIT and token.text.startswith("0x"):
            self._consume_token()
            return self.float_of_bits(token.text, float_type, token.span)
        return self.parse_float()

    def _parse_dialect_resource_handle(self, dialect_name: str, interface: OpAsmDialectInterface) -> str:
        """A key of a resource. What it is for is what this text says of it, not one that was read before."""
        key = self.parse_identifier_or_str_literal(" for resource handle")
        if (dialect_name, key) not in self.dialect_resources:
            self.dialect_resources.add((dialect_name, key))
            interface._blob_storage[key] = ""  # pyright: ignore[reportPrivateUsage]
        return key

    def _parse_external_resources(self) -> None:
        """What other tools keep in the file, for each of which there is a warning."""

        def parse_of_one_tool() -> None:
            start = self.pos
            tool = self.parse_identifier_or_str_literal()
            self.parse_punctuation(":")
            self.parse_comma_separated_list(self.Delimiter.BRACES, parse_entry)
            warn(self.lines.place(start), f"ignoring unknown external resources for '{tool}'")

        def parse_entry() -> None:
            self.parse_identifier_or_str_literal()
            self.parse_punctuation(":")
            if self.parse_optional_boolean() is None:
                self.parse_str_literal()

        self.parse_comma_separated_list(self.Delimiter.BRACES, parse_of_one_tool)

    def _parse_extended_type_or_attribute(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, attr_or_dialect_name: str, is_type: bool
    ) -> Attribute:
        """What follows `!` or `#`: of a dialect that is not known it is kept as it stands."""
        dialect, dot, name = attr_or_dialect_name.partition(".")
        has_body = self._current_token.kind is MLIRTokenKind.LESS
        if not (dot or has_body) or self.ctx.get_optional_dialect(dialect) is not None:
            return super()._parse_extended_type_or_attribute(attr_or_dialect_name, is_type)
        text = self._parse_dialect_symbol_body() if has_body else ""
        if dot:
            text = f"{name}<{text}>" if has_body else name
        match = _SYMBOL_NAME.match(text)
        full_name = f"{dialect}.{match[0] if match else ''}"
        known = self.ctx.get_optional_type(full_name) if is_type else self.ctx.get_optional_attr(full_name)
        if known is None or not issubclass(known, UnregisteredAttr):
            self.raise_error(f"'{full_name}' is not registered")
        return known(full_name, is_type, True, text.removeprefix(match[0] if match else ""))
