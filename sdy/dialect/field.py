"""Parsers of attribute parameters, with MLIR's error messages."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from xdsl.ir import Data
from xdsl.parser import AttrParser
from xdsl.utils.mlir_lexer import MLIRTokenKind

from sdy.ir.open_syntax import next_token
from sdy.parse_errors import explained, parse_error

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Field(Generic[T]):
    """A parameter of an attribute, and the parser of its value or of its elements.

    Attributes:
        owner: The name of the attribute in C++.
        name: The name of the parameter.
        cpp_type: The C++ type of the parameter, for error messages.
        parse: Parses the value, or one element.
        attribute: The name of the attribute that wraps the value, if any; the attribute or an alias may then stand in
            place of the value.
        dialect: The prefix of the attribute's dialect in C++, for error messages.
    """

    owner: str
    name: str
    cpp_type: str
    parse: Callable[[AttrParser], T]
    attribute: str | None = None
    dialect: str = "Sdy"

    def read(self, parser: AttrParser) -> T:
        """Parse the value."""
        return explained(parser, self._parse, self._failure)

    def read_several(self, parser: AttrParser) -> tuple[T, ...]:
        """Parse one or more comma-separated values."""
        return explained(parser, self._parse_several, self._failure)

    def read_until(self, parser: AttrParser, close: str) -> tuple[T, ...]:
        """Parse comma-separated values, possibly none, and the punctuation `close`; its opening has been parsed."""
        if parser.parse_optional_characters(close):
            return ()
        values = self.read_several(parser)
        parse_close(parser, close)
        return values

    @property
    def _failure(self) -> str:
        return f"failed to parse {self.dialect}_{self.owner} parameter '{self.name}' which is to be a `{self.cpp_type}`"

    def _parse(self, parser: AttrParser) -> T:
        return self.parse(parser) if self.attribute is None else parse_value_of(parser, self.attribute, self.parse)

    def _parse_several(self, parser: AttrParser) -> tuple[T, ...]:
        return parse_elements(parser, self._parse)


def parse_elements(parser: AttrParser, parse: Callable[[AttrParser], T]) -> tuple[T, ...]:
    """Parse one or more comma-separated elements."""
    elements = [parse(parser)]
    while parser.parse_optional_punctuation(","):
        elements.append(parse(parser))
    return tuple(elements)


def parse_value_of(parser: AttrParser, attribute: str, parse: Callable[[AttrParser], T]) -> T:
    """Parse a value with `parse`, or the standalone attribute or alias in its place."""
    if next_token(parser).kind is not MLIRTokenKind.HASH_IDENT:
        return parse(parser)
    start = parser.pos
    wrapper = parser.parse_attribute()
    if not isinstance(wrapper, Data) or wrapper.name != attribute:
        raise parse_error(parser, "invalid kind of attribute specified", start)
    return cast(Data[T], wrapper).data


def parse_close(parser: AttrParser, close: str) -> None:
    """Parse the punctuation that closes a list."""
    if not parser.parse_optional_characters(close):
        parser.raise_error(f"expected '{close}'")
