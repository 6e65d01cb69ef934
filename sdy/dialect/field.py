"""A parameter of an attribute: how its text is read, and what MLIR says where it cannot be."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from xdsl.ir import Data
from xdsl.parser import AttrParser
from xdsl.utils.mlir_lexer import MLIRTokenKind

from sdy.ir.parsing import next_token
from sdy.parse_errors import explained, parse_error

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Field(Generic[T]):
    """Parameter `name` of attribute `owner`, of C++ type `cpp_type`, whose text or that of its elements `parse` reads.

    Where the value is that of an attribute, called `attribute`, the whole attribute or an alias of it may stand there.
    """

    owner: str
    name: str
    cpp_type: str
    parse: Callable[[AttrParser], T]
    attribute: str | None = None

    def read(self, parser: AttrParser) -> T:
        """The value that comes next."""
        return explained(parser, self._parse, self._failure)

    def read_several(self, parser: AttrParser) -> tuple[T, ...]:
        """One value or more, with commas between them."""
        return explained(parser, self._parse_several, self._failure)

    def read_until(self, parser: AttrParser, close: str) -> tuple[T, ...]:
        """Values, if any, up to the punctuation `close`, whose opening has been read."""
        if parser.parse_optional_characters(close):
            return ()
        values = self.read_several(parser)
        parse_close(parser, close)
        return values

    @property
    def _failure(self) -> str:
        return f"failed to parse Sdy_{self.owner} parameter '{self.name}' which is to be a `{self.cpp_type}`"

    def _parse(self, parser: AttrParser) -> T:
        return self.parse(parser) if self.attribute is None else parse_value_of(parser, self.attribute, self.parse)

    def _parse_several(self, parser: AttrParser) -> tuple[T, ...]:
        return parse_elements(parser, self._parse)


def parse_elements(parser: AttrParser, parse: Callable[[AttrParser], T]) -> tuple[T, ...]:
    """One element or more, with commas between them."""
    elements = [parse(parser)]
    while parser.parse_optional_punctuation(","):
        elements.append(parse(parser))
    return tuple(elements)


def parse_value_of(parser: AttrParser, attribute: str, parse: Callable[[AttrParser], T]) -> T:
    """The value that `parse` reads, or that of the whole attribute, or of an alias of it, that stands in its place."""
    if next_token(parser).kind is not MLIRTokenKind.HASH_IDENT:
        return parse(parser)
    start = parser.pos
    found = parser.parse_attribute()
    if not isinstance(found, Data) or found.name != attribute:
        raise parse_error(parser, "invalid kind of attribute specified", start)
    return cast(Data[T], found).data


def parse_close(parser: AttrParser, close: str) -> None:
    """The punctuation that ends a list."""
    if not parser.parse_optional_characters(close):
        parser.raise_error(f"expected '{close}'")
