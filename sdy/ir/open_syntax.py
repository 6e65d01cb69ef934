"""xDSL's parsers and printer with replaceable steps, under their names without the underscore.

class MyParser(OpenParser):
    def parse_block(self) -> Block:             # overrides xDSL's `_parse_block`
        ...
        return super().parse_block()
"""

# pyright: reportPrivateUsage=false

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.dialect_interfaces.op_asm import OpAsmDialectInterface
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import SSAValue
from xdsl.parser import AffineParser, AttrParser, Parser, ParserState
from xdsl.printer import Printer
from xdsl.utils.lexer import Input, Span
from xdsl.utils.mlir_lexer import MLIRToken, MLIRTokenKind

if TYPE_CHECKING:
    Text: TypeAlias = Input[str]
    TextSpan: TypeAlias = Span[str]
    AnySpan: TypeAlias = Span[str] | Span[bytes]
else:  # in xDSL 0.73, which only parses text, these are not generic
    Text, TextSpan, AnySpan = Input, Span, Span


class _OpenSteps:
    """Installs methods of subclasses named like an open step in place of that step."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name in OPEN_STEPS.intersection(vars(cls)):
            setattr(cls, f"_{name}", vars(cls)[name])


OPEN_STEPS: set[str] = set()
"""Names of the replaceable steps, without xDSL's leading underscore."""


class OpenParser(Parser, _OpenSteps):
    """xDSL's parser of MLIR text."""

    state: Any = property(attrgetter("_parser_state"))
    """The lexer and the next token."""

    current_token = Parser._current_token
    consume_token = Parser._consume_token
    parse_alias_def = Parser._parse_alias_def
    parse_block = Parser._parse_block
    parse_block_body = Parser._parse_block_body
    parse_builtin_densearray_attr = Parser._parse_builtin_densearray_attr
    parse_builtin_dict_attr = Parser._parse_builtin_dict_attr
    parse_dialect_resource_handle = Parser._parse_dialect_resource_handle
    parse_dialect_symbol_body = Parser._parse_dialect_symbol_body
    parse_dialect_type_or_attribute_body = Parser._parse_dialect_type_or_attribute_body
    parse_extended_type_or_attribute = Parser._parse_extended_type_or_attribute
    parse_external_resources = Parser._parse_external_resources
    parse_file_metadata_dictionary = Parser._parse_file_metadata_dictionary
    parse_generic_operation = Parser._parse_generic_operation
    parse_location = Parser._parse_location
    parse_memref_attrs = Parser._parse_memref_attrs
    parse_optional_array_attr = Parser._parse_optional_array_attr
    parse_optional_block_arg_list = Parser._parse_optional_block_arg_list
    parse_optional_builtin_parametrized_attr = Parser._parse_optional_builtin_parametrized_attr
    parse_optional_builtin_parametrized_type = Parser._parse_optional_builtin_parametrized_type
    parse_optional_integer_or_float_type = Parser._parse_optional_integer_or_float_type
    parse_optional_shape_delimiter = Parser._parse_optional_shape_delimiter
    parse_optional_token = Parser._parse_optional_token
    parse_tensor_attrs = Parser._parse_tensor_attrs
    parse_token = Parser._parse_token
    parse_vector_attrs = Parser._parse_vector_attrs
    register_ssa_definition = Parser._register_ssa_definition
    resume_from = Parser._resume_from

    def start_with(self, state: ParserState[MLIRTokenKind]) -> None:
        """Continue parsing from `state`."""
        self._parser_state = state


class OpenAffineParser(AffineParser, _OpenSteps):
    """xDSL's parser of affine maps and sets."""

    current_token = AffineParser._current_token
    consume_token = AffineParser._consume_token
    create_binop_expr = AffineParser._create_binop_expr
    parse_affine_constraint = AffineParser._parse_affine_constraint
    parse_affine_expr = AffineParser._parse_affine_expr
    parse_optional_token = AffineParser._parse_optional_token
    parse_primary = AffineParser._parse_primary


OPEN_STEPS.update(
    name for parser in (OpenParser, OpenAffineParser) for name in vars(parser) if hasattr(parser.__base__, f"_{name}")
)


def next_token(parser: AttrParser) -> MLIRToken:
    """Return the next token of an attribute parser."""
    return parser._current_token


def take_token(parser: AttrParser, kind: MLIRTokenKind) -> MLIRToken | None:
    """Consume and return the next token of an attribute parser if it has this kind."""
    return parser._parse_optional_token(kind)


def declare_blob(interface: OpAsmDialectInterface, key: str) -> None:
    """Declare a resource with this key whose contents follow later."""
    interface._blob_storage[key] = ""


class OpenPrinter(Printer):
    """xDSL's printer with public access to its indentation and steps."""

    @property
    def indentation(self) -> int:
        """The indentation of the next line, in steps."""
        return self._indent

    @indentation.setter
    def indentation(self, steps: int) -> None:
        self._indent = steps

    def print_new_line(self, indent: int | None = None, print_message: bool = True) -> None:
        """End a line, and indent the next one by `indent` steps, or by the current indentation."""
        super()._print_new_line(indent, print_message)

    def _print_new_line(self, indent: int | None = None, print_message: bool = True) -> None:
        self.print_new_line(indent, print_message)


def share_names(printer: Printer, values: Sequence[SSAValue], named: Sequence[SSAValue]) -> None:
    """Let xDSL's own printer use the names of `named`, already printed, for `values` too."""
    names = printer._ssa_values
    names.update((value, names[other]) for value, other in zip(values, named, strict=False) if other in names)


def print_element(attribute: DenseIntOrFPElementsAttr, element: Any, printer: Printer) -> None:
    """Print one element of `attribute`."""
    attribute._print_one_elem(element, printer)


def print_elements(attribute: DenseIntOrFPElementsAttr, elements: Sequence[Any], printer: Printer) -> None:
    """Print the elements of `attribute`, in brackets for each dimension."""
    attribute._print_dense_list(elements, attribute.get_shape(), printer)
