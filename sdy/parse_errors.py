"""What is wrong in a text, told as MLIR's parsers tell it: first the mistake, then each thing it kept from being read.

    program.mlir:1:27: error: custom op 'sdy.mesh' expected string
    program.mlir:1:27: error: custom op 'sdy.mesh' failed to parse Sdy_MeshAxis parameter 'name' which is to be a ...

A statement made while an operation reads its own form has the operation's name before it; one made inside an
attribute that stands for itself, `#sdy.mesh<...>`, has not. Whoever reads the text does not know where it stands, so a
statement stays open until the attribute or the operation around it has been reached.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from xdsl.parser import AttrParser
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Span

from sdy.diagnostics import Location
from sdy.ir.parsing import AnySpan

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Statement:
    """A message about an offset of the text; an open one takes the name of the operation around it."""

    offset: int
    message: str
    is_open: bool


class ChainedParseError(ParseError):
    """Statements about one mistake, the mistake itself first."""

    def __init__(self, span: AnySpan, *statements: Statement):
        super().__init__(span, statements[0].message)
        self.statements = statements

    def then(self, offset: int, message: str) -> "ChainedParseError":
        """This problem, and what could not be read because of it."""
        return ChainedParseError(self.span, *self.statements, Statement(offset, message, is_open=True))

    def close(self, speaker: str = "") -> "ChainedParseError":
        """This problem with `speaker` before each open statement."""
        closed = (replace(s, message=speaker + s.message, is_open=False) if s.is_open else s for s in self.statements)
        return ChainedParseError(self.span, *closed)


def parse_error(parser: AttrParser, message: str, offset: int | None = None) -> ChainedParseError:
    """An error to raise about what comes next, or about what stands at `offset`."""
    start = parser.pos if offset is None else offset
    return ChainedParseError(Span(start, start + 1, parser.lexer.input), Statement(start, message, is_open=True))


def place_of_next(parser: AttrParser) -> Location:
    """Where what comes next stands."""
    source, start = parser.lexer.input, parser.pos
    return Location(source.name, source.content.count("\n", 0, start) + 1, start - source.content.rfind("\n", 0, start))


def explained(parser: AttrParser, parse: Callable[[AttrParser], T], failure: str) -> T:
    """What `parse` reads; where it cannot, `failure` is said after the mistake."""
    try:
        return parse(parser)
    except ChainedParseError as problem:
        raise problem.then(parser.pos, failure) from None
    except ParseError as problem:
        mistake = Statement(problem.span.start, problem.msg, is_open=False)
        raise ChainedParseError(problem.span, mistake).then(parser.pos, failure) from None
