"""The parser of the builtin types and attributes that xDSL parses differently from MLIR.

memref<4xf32, affine_map<(d0) -> (d0)>, 0>    default layout and memory space, dropped: memref<4xf32>
dense_resource<"a b">                         quoted keys
tensor<?xf32, #stablehlo.bounds<4>>           verified encodings
"""

from xdsl.dialect_interfaces.op_asm import OpAsmDialectInterface
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    IntegerAttr,
    MemRefType,
    NoneAttr,
    TensorType,
    UnrankedMemRefType,
    UnrankedTensorType,
    i64,
)
from xdsl.ir import Attribute
from xdsl.ir.affine import AffineMap
from xdsl.utils.exceptions import VerifyException

from sdy.diagnostics import warn
from sdy.ir.constraints import TensorEncoding
from sdy.ir.open_syntax import declare_blob
from sdy.text.reading.sparse_elements import SparseElementsParser

_DEFAULT_MEMORY_SPACE = IntegerAttr(0, i64)


class BuiltinSyntaxParser(SparseElementsParser):
    """Mixin of the parser for builtin types and attributes."""

    def parse_memref_attrs(self) -> MemRefType | UnrankedMemRefType:
        """Parse a memref's parameters; the default layout and memory space are dropped."""
        memref = super().parse_memref_attrs()
        space = NoneAttr() if memref.memory_space == _DEFAULT_MEMORY_SPACE else memref.memory_space
        if isinstance(memref, UnrankedMemRefType):
            return UnrankedMemRefType.from_type(memref.element_type, space)
        is_identity = memref.layout == AffineMapAttr(AffineMap.identity(len(memref.shape)))
        return MemRefType(memref.element_type, memref.shape, NoneAttr() if is_identity else memref.layout, space)

    def parse_tensor_attrs(self) -> TensorType[Attribute] | UnrankedTensorType[Attribute]:
        """Parse a tensor's parameters and verify the encoding."""
        tensor: TensorType[Attribute] | UnrankedTensorType[Attribute] = super().parse_tensor_attrs()
        if isinstance(tensor, TensorType) and isinstance(tensor.encoding, TensorEncoding):
            try:
                tensor.encoding.verify_encoding(TensorType(tensor.element_type, tensor.shape))
            except VerifyException as problem:
                self.raise_error(str(problem), self.pos)
        return tensor

    def parse_optional_array_attr(self) -> ArrayAttr | None:
        if self.parse_optional_punctuation("[") is None:
            return None
        if self.parse_optional_punctuation("]") is not None:
            return ArrayAttr(())
        elements = self.parse_comma_separated_list(self.Delimiter.NONE, self.parse_typed_attribute)
        if self.parse_optional_punctuation("]") is None:
            self.raise_error("expected ',' or ']'")
        return ArrayAttr(elements)

    def parse_dialect_resource_handle(self, dialect_name: str, interface: OpAsmDialectInterface) -> str:
        """Parse the key of a resource and reset its blob, which another text may have defined."""
        key = self.parse_identifier_or_str_literal(" for resource handle")
        if (dialect_name, key) not in self.dialect_resources:
            self.dialect_resources.add((dialect_name, key))
            declare_blob(interface, key)
        return key

    def parse_external_resources(self) -> None:
        """Skip the resources of external tools, with a warning for each."""

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
