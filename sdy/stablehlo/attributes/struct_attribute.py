"""Struct attributes `<key = value, ...>`: dataclasses whose fields are the keys.

@dataclass(frozen=True)                         #stablehlo.gather<offset_dims = [1], index_vector_dim = 2>
class GatherDimensionNumbers:
    offset_dims: tuple[int, ...] = ()           the type of a field selects its parser
    index_vector_dim: int = 0                   the default of an omitted key
"""

from collections.abc import Callable, Iterable
from dataclasses import MISSING, fields
from typing import Any, ClassVar, Generic, cast, get_origin, get_type_hints

from typing_extensions import TypeVar
from xdsl.dialects.builtin import f64
from xdsl.ir import Attribute, TypeAttribute
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from sdy.ir.building import SharedData
from sdy.parse_errors import parse_error

Struct = TypeVar("Struct")


def parse_dims(parser: AttrParser) -> tuple[int, ...]:
    """Parse `[0, 2, 1]`."""
    return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer))


def dims_text(dims: Iterable[int]) -> str:
    """Return the text `[0, 2, 1]`."""
    return f"[{', '.join(map(str, dims))}]"


PARSE: dict[Any, Callable[[AttrParser], Any]] = {
    tuple[int, ...]: parse_dims,
    int: lambda parser: parser.parse_integer(),
    float: lambda parser: parser.parse_number(),
    bool: lambda parser: parser.parse_integer() != 0,
    str: lambda parser: parser.parse_str_literal(),
    TypeAttribute: lambda parser: parser.parse_type(),
}
"""The parsers of fields by Python type; fields of other types are attributes."""


def print_field(printer: Printer, value: object) -> None:
    """Print the value of a field."""
    match value:
        case tuple():
            printer.print_string(dims_text(cast(tuple[int, ...], value)))
        case Attribute():
            printer.print_attribute(value)
        case str():
            printer.print_string_literal(value)
        case float():
            printer.print_float(value, f64)
        case _:
            printer.print_string(str(value).lower())


def parse_attribute_of(parser: AttrParser, type_: Any) -> Attribute:
    """Parse a field that is an attribute of this class."""
    start, kind = parser.pos, get_origin(type_) or type_
    attribute = parser.parse_attribute()
    if isinstance(kind, type) and issubclass(kind, Attribute) and not isinstance(attribute, kind):
        raise parse_error(parser, "invalid kind of attribute specified", start)
    return attribute


def parse_struct(parser: AttrParser, struct: type[Struct], delimiter: AttrParser.Delimiter) -> Struct:
    """Parse `key = value, ...`, with keys in any order."""
    types: dict[str, Any] = get_type_hints(struct)
    values: dict[str, Any] = {}

    def parse_entry() -> None:
        start = parser.pos
        key = parser.parse_optional_keyword_in(types)
        if key is None:
            parser.raise_error(f"expected one of: {', '.join(f'`{name}`' for name in types)}")
        if key in values:
            parser.raise_error(f"duplicated `{key}` entry", start, parser.pos)
        parser.parse_punctuation("=")
        parse = PARSE.get(types[key])
        values[key] = parse_attribute_of(parser, types[key]) if parse is None else parse(parser)

    start = parser.pos
    parser.parse_comma_separated_list(delimiter, parse_entry)
    for field in fields(cast(Any, struct)):
        if field.default is MISSING and field.name not in values:
            parser.raise_error(f"struct is missing required parameter: {field.name}", start, parser.pos)
    return struct(**values)


class StructAttr(SharedData[Struct], Generic[Struct]):
    """An attribute around a dataclass; keys with default values are not printed."""

    STRUCT: ClassVar[type[Any]]

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Struct:
        """Parse `<key = value, ...>`."""
        return parse_struct(parser, cls.STRUCT, parser.Delimiter.ANGLE)

    def print_parameter(self, printer: Printer) -> None:
        """Print `<key = value, ...>`."""
        printed = [field for field in fields(self.STRUCT) if getattr(self.data, field.name) != field.default]
        with printer.in_angle_brackets():
            for number, field in enumerate(printed):
                printer.print_string(f"{', ' if number else ''}{field.name} = ")
                print_field(printer, getattr(self.data, field.name))
