"""Attributes that say what the dimensions of an operation's tensors are, `<offset_dims = [1], index_vector_dim = 2>`.

Each key may be left out and they stand in any order, as in any `StructAttr`; here a comma may follow the last one, `?`
stands for a dynamic size, and what cannot be read is named after the mistake in it.
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
    """Read `key = value, ... >`, what follows `<`; `what` names it where it cannot be read."""

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
    """Dimension numbers as an attribute."""

    WHAT: ClassVar[str]
    """What messages call them."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Struct:
        """Read `<key = value, ...>`."""
        parser.parse_punctuation("<")
        return parse_dimension_numbers(parser, cls.STRUCT, cls.WHAT)
