"""Attributes written as `<key = value, ...>`: a plain dataclass whose fields are the keys.

@dataclass(frozen=True)                         #stablehlo.gather<offset_dims = [1], index_vector_dim = 2>
class GatherDimensionNumbers:
    offset_dims: tuple[int, ...] = ()           the type of a field is its syntax
    index_vector_dim: int = 0                   its default stands for a key that is not written
"""

from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any, ClassVar, Generic, NamedTuple, cast, get_type_hints

from typing_extensions import TypeVar
from xdsl.dialects.builtin import f64
from xdsl.ir import Attribute, Data, TypeAttribute
from xdsl.parser import AttrParser
from xdsl.printer import Printer

Struct = TypeVar("Struct")


class FieldSyntax(NamedTuple):
    """How a field of one Python type is read and written."""

    parse: Callable[[AttrParser], Any]
    print: Callable[[Printer, Any], None]


def parse_dims(parser: AttrParser) -> tuple[int, ...]:
    """Read `[0, 2, 1]`."""
    return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer))


def dims_text(dims: tuple[int, ...]) -> str:
    """`[0, 2, 1]`."""
    return f"[{', '.join(map(str, dims))}]"


SYNTAX: dict[Any, FieldSyntax] = {
    tuple[int, ...]: FieldSyntax(parse_dims, lambda printer, dims: printer.print_string(dims_text(dims))),
    int: FieldSyntax(
        lambda parser: parser.parse_integer(allow_boolean=False),
        lambda printer, number: printer.print_string(str(number)),
    ),
    float: FieldSyntax(
        lambda parser: float(parser.parse_number()),
        lambda printer, number: printer.print_float(number, f64),
    ),
    bool: FieldSyntax(
        lambda parser: parser.parse_boolean(),
        lambda printer, flag: printer.print_string("true" if flag else "false"),
    ),
    str: FieldSyntax(
        lambda parser: parser.parse_str_literal(),
        lambda printer, text: printer.print_string_literal(text),
    ),
    TypeAttribute: FieldSyntax(
        lambda parser: parser.parse_type(),
        lambda printer, attribute: printer.print_attribute(attribute),
    ),
    Attribute: FieldSyntax(
        lambda parser: parser.parse_attribute(),
        lambda printer, attribute: printer.print_attribute(attribute),
    ),
}


def parse_struct(parser: AttrParser, struct: type[Struct], delimiter: AttrParser.Delimiter) -> Struct:
    """Read `key = value, ...`, the keys in any order."""
    types = get_type_hints(struct)
    values: dict[str, Any] = {}

    def parse_entry() -> None:
        start = parser.pos
        key = parser.parse_optional_keyword_in(types)
        if key is None:
            parser.raise_error(f"expected one of: {', '.join(f'`{name}`' for name in types)}")
        if key in values:
            parser.raise_error(f"duplicated `{key}` entry", start, parser.pos)
        parser.parse_punctuation("=")
        values[key] = SYNTAX[types[key]].parse(parser)

    start = parser.pos
    parser.parse_comma_separated_list(delimiter, parse_entry)
    for field in fields(cast(Any, struct)):
        if field.default is MISSING and field.name not in values:
            parser.raise_error(f"struct is missing required parameter: {field.name}", start, parser.pos)
    return struct(**values)


class StructAttr(Data[Struct], Generic[Struct]):
    """An attribute around a dataclass; keys whose value is the default are not written."""

    STRUCT: ClassVar[type[Any]]

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Struct:
        """Read `<key = value, ...>`."""
        return parse_struct(parser, cls.STRUCT, parser.Delimiter.ANGLE)

    def print_parameter(self, printer: Printer) -> None:
        """Write `<key = value, ...>`."""
        types = get_type_hints(self.STRUCT)
        written = [field for field in fields(self.STRUCT) if getattr(self.data, field.name) != field.default]
        with printer.in_angle_brackets():
            for number, field in enumerate(written):
                printer.print_string(f"{', ' if number else ''}{field.name} = ")
                SYNTAX[types[field.name]].print(printer, getattr(self.data, field.name))
