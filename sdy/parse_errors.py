"""Parse errors in MLIR's form: the mistake first, then everything that could not be parsed because of it.

    program.mlir:1:27: error: custom op 'sdy.mesh' expected string
    program.mlir:1:27: error: custom op 'sdy.mesh' failed to parse Sdy_MeshAxis parameter 'name' which is to be a ...

A statement made while an operation parses its custom form has the operation's name before it; one made inside a
standalone attribute, `#sdy.mesh<...>`, has none. An attribute's parser does not know which case applies, so a statement
stays open until the enclosing attribute or operation closes it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from xdsl.parser import AttrParser
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Span

from sdy.diagnostics import Location
from sdy.ir.open_syntax import AnySpan

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Statement:
    """A message at an offset of the text; an open one gets the name of the enclosing operation as prefix."""

    offset: int
    message: str
    is_open: bool


class ChainedParseError(ParseError):
    """Statements about one mistake, the mistake itself first."""

    def __init__(self, span: AnySpan, *statements: Statement):
        super().__init__(span, statements[0].message)
        self.statements = statements

    def then(self, offset: int, message: str) -> "ChainedParseError":
        """Return this error with another open statement: a construct that could not be parsed because of it."""
        return ChainedParseError(self.span, *self.statements, Statement(offset, message, is_open=True))

    def close(self, speaker: str = "") -> "ChainedParseError":
        """Return this error with `speaker` before each open statement, and all statements closed."""
        closed = (replace(s, message=speaker + s.message, is_open=False) if s.is_open else s for s in self.statements)
        return ChainedParseError(self.span, *closed)


def parse_error(parser: AttrParser, message: str, offset: int | None = None) -> ChainedParseError:
    """Return an error to raise about the next token, or about `offset`."""
    start = parser.pos if offset is None else offset
    return ChainedParseError(Span(start, start + 1, parser.lexer.input), Statement(start, message, is_open=True))


def next_location(parser: AttrParser) -> Location:
    """Return the location of the next token."""
    source, start = parser.lexer.input, parser.pos
    return Location(source.name, source.content.count("\n", 0, start) + 1, start - source.content.rfind("\n", 0, start))


def explained(parser: AttrParser, parse: Callable[[AttrParser], T], failure: str) -> T:
    """Run `parse`; if it fails, append the statement `failure` to its error."""
    try:
        return parse(parser)
    except ChainedParseError as problem:
        raise problem.then(parser.pos, failure) from None
    except ParseError as problem:
        mistake = Statement(problem.span.start, problem.msg, is_open=False)
        raise ChainedParseError(problem.span, mistake).then(parser.pos, failure) from None
