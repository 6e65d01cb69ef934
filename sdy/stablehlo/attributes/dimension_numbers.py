"""Dimension numbers of dot products, gathers and scatters: `<offset_dims = [1], index_vector_dim = 2>`.

As in any `StructAttr`, keys are optional and in any order. In addition a trailing comma is allowed, `?` stands for a
dynamic size, and a parse error is followed by a second one that names the attribute.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar, get_type_hints

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.parser import AttrParser

from sdy.parse_errors import explained, parse_error
from sdy.stablehlo.attributes.struct_attribute import Struct, StructAttr

T = TypeVar("T")


def _parse_size(parser: AttrParser) -> int:
    return DYNAMIC_INDEX if parser.parse_optional_punctuation("?") else parser.parse_integer()


def _parse_sizes(parser: AttrParser) -> tuple[int, ...]:
    return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _parse_size(parser)))


_PARSE: dict[Any, Callable[[AttrParser], Any]] = {
    int: lambda parser: parser.parse_integer(),
    tuple[int, ...]: _parse_sizes,
}


def parse_dimension_numbers(parser: AttrParser, struct: type[T], what: str) -> T:
    """Parse `key = value, ... >`, after the `<`; `what` names the attribute in errors."""

    def parse(parser: AttrParser) -> T:
        keys = get_type_hints(struct)
        values: dict[str, Any] = {}
        while parser.parse_optional_punctuation(">") is None:
            key = parser.parse_optional_keyword_in(keys)
            if key is None:
                raise parse_error(parser, f"expected one of: {', '.join(f'`{name}`' for name in keys)}")
            if key in values:
                raise parse_error(parser, f"duplicated `{key}` entry")
            parser.parse_punctuation("=")
            values[key] = _PARSE[keys[key]](parser)
            if parser.parse_optional_punctuation(",") is None:
                parser.parse_punctuation(">")
                break
        return struct(**values)

    return explained(parser, parse, f"failed parsing {what} attribute")


class DimensionNumbersAttr(StructAttr[Struct], Generic[Struct]):
    """Base class of attributes of dimension numbers."""

    DESCRIPTION: ClassVar[str]
    """The name of the dimension numbers in error messages."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Struct:
        """Parse `<key = value, ...>`."""
        parser.parse_punctuation("<")
        return parse_dimension_numbers(parser, cls.STRUCT, cls.DESCRIPTION)
