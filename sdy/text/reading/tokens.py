"""Taking tokens one by one: what every rule of the parser is made of."""

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar, cast

from xdsl.context import Context
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, TypeAttribute
from xdsl.parser import ParserState
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Input, Span
from xdsl.utils.mlir_lexer import MLIRToken, MLIRTokenKind, PunctuationSpelling

from sdy.diagnostics import DiagnosticError, Note, error
from sdy.ir.parsing import OpenParser
from sdy.parse_errors import parse_error
from sdy.text.lines import LineTable, end_of_code
from sdy.text.reading.lexer import KIND_OF_PUNCTUATION, LazyToken, Lexer
from sdy.text.reading.wording import MISSING, REFUSED

T = TypeVar("T")

_LARGEST_INTEGER = 2**63 - 1
_MOST_DIGITS = 4000
"""Python reads hardly more: it takes longer than it should for more digits."""


def integer_value(text: str) -> int:
    """The number that a token says; of one with thousands of digits all that is known is that nothing can hold it."""
    if len(text) > _MOST_DIGITS:
        return 1 << 2 * _MOST_DIGITS
    return int(text, 16 if text[:2] in ("0x", "0X") else 10)  # `011` is eleven


class TokenParser(OpenParser):
    """The part of the parser that takes tokens; it runs for each one, so it calls as little as it can."""

    def __init__(self, context: Context, text: str, filename: str):
        super().__init__(context, "", filename)
        self.lines = LineTable(text, filename)
        self.start_with(ParserState(Lexer(Input(text, filename))))

    def error_at(self, offset: int, message: str, *notes: Note) -> DiagnosticError:
        """An error at an offset of the text."""
        return error(self.lines.place(offset), message, *notes)

    def raise_error(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, msg: str, at_position: Any = None, end_position: Any = None
    ) -> NoReturn:
        """Raises ParseError: at a position, or where what is missing should have stood."""
        if at_position is not None:
            super().raise_error(MISSING.get(msg, msg), at_position, end_position)
        if msg in REFUSED:
            raise parse_error(self, REFUSED[msg])
        source = self.lexer.input
        at_end = self.current_token.kind is MLIRTokenKind.EOF
        offset = end_of_code(source.content, max(self.pos - at_end, 0))
        raise ParseError(Span(offset, offset + 1, source), MISSING.get(msg, msg))

    @property
    def pos(self) -> int:
        """Where the next token starts."""
        return cast(LazyToken, self.state.current_token).start

    def go_to(self, offset: int) -> None:
        """Go on with the token at or after an offset."""
        state = self.state
        state.lexer.pos = offset
        state.current_token = state.lexer.lex()

    def parse_optional_token(self, expected_kind: MLIRTokenKind) -> MLIRToken | None:
        state = self.state
        token = state.current_token
        if token.kind is not expected_kind:
            return None
        state.current_token = state.lexer.lex()
        return token

    def parse_token(self, expected_kind: MLIRTokenKind, error_msg: str) -> MLIRToken:
        token = self.parse_optional_token(expected_kind)
        if token is None:
            self.raise_error(error_msg)
        return token

    def parse_optional_punctuation(self, punctuation: PunctuationSpelling) -> PunctuationSpelling | None:
        """The punctuation, if it is next."""
        state = self.state
        if state.current_token.kind is not KIND_OF_PUNCTUATION[punctuation]:
            return None
        state.current_token = state.lexer.lex()
        return punctuation

    def parse_punctuation(self, punctuation: PunctuationSpelling, context_msg: str = "") -> PunctuationSpelling:
        """The punctuation. Raises ParseError where something else is next."""
        state = self.state
        if state.current_token.kind is not KIND_OF_PUNCTUATION[punctuation]:
            self.raise_error(f"expected '{punctuation}'{context_msg}")
        state.current_token = state.lexer.lex()
        return punctuation

    def parse_characters(self, text: str, context_msg: str = "") -> str:
        """The token with this text. Raises ParseError where something else is next."""
        if self.parse_optional_characters(text) is None:
            self.raise_error(f"expected '{text}'{context_msg}")
        return text

    def parse_keyword(self, keyword: str, context_msg: str = "") -> str:
        """The keyword. Raises ParseError where something else is next."""
        if self.parse_optional_keyword(keyword) is None:
            raise parse_error(self, f"expected '{keyword}'{context_msg}")
        return keyword

    def parse_identifier(self, context_msg: str = "") -> str:
        """A word. Raises ParseError where something else is next."""
        word = self.parse_optional_identifier()
        if word is None:
            raise parse_error(self, f"expected valid keyword{context_msg}")
        return word

    def parse_optional_integer(self, allow_boolean: bool = True, allow_negative: bool = True) -> int | None:
        """A number without a fraction, if one is next. Raises ParseError where it does not fit in 64 bits."""
        if allow_boolean and (boolean := self.parse_optional_boolean()) is not None:
            return int(boolean)
        start = self.pos
        is_negative = allow_negative and self.parse_optional_punctuation("-") is not None
        token = cast("LazyToken | None", self.parse_optional_token(MLIRTokenKind.INTEGER_LIT))
        if token is None:
            if is_negative:
                self.raise_error("Expected integer literal after '-'")
            return None
        number = integer_value(token.text)
        if number > _LARGEST_INTEGER + is_negative:
            raise parse_error(self, "integer value too large", start)
        return -number if is_negative else number

    def parse_integer(self, allow_boolean: bool = True, allow_negative: bool = True, context_msg: str = "") -> int:
        """A number without a fraction. Raises ParseError where something else is next."""
        number = self.parse_optional_integer(allow_boolean, allow_negative)
        if number is None:
            raise parse_error(self, f"expected integer value{context_msg}")
        return number

    def parse_symbol_name(self) -> StringAttr:
        """A name after `@`. Raises ParseError where something else is next."""
        name = self.parse_optional_symbol_name()
        if name is None:
            raise parse_error(self, "expected valid '@'-identifier for symbol name")
        return name

    def parse_type(self) -> TypeAttribute:
        """A type. Raises ParseError where something else is next."""
        found = self.parse_optional_type()
        if found is None:
            self.raise_error("expected non-function type")
        return found

    def parse_attribute(self) -> Attribute:
        """An attribute. Raises ParseError where something else is next."""
        found = self.parse_optional_attribute()
        if found is None:
            self.raise_error("expected attribute value")
        return found

    def parse_optional_characters(self, text: str) -> str | None:
        """The token with this text, if it is next."""
        state = self.state
        if state.current_token.text != text:
            return None
        state.current_token = state.lexer.lex()
        return text

    def parse_optional_undelimited_comma_separated_list(
        self, parse_optional: Callable[[], T | None], parse: Callable[[], T]
    ) -> list[T] | None:
        """Things with commas between them, if one starts here. A type always does, but before what closes its list."""
        closed = self.current_token.kind is MLIRTokenKind.R_PAREN
        if parse_optional == self.parse_optional_type and not closed:
            return self.parse_comma_separated_list(self.Delimiter.NONE, parse)
        return super().parse_optional_undelimited_comma_separated_list(parse_optional, parse)
