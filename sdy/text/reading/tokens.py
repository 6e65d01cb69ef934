"""The token-level primitives of the parser, and MLIR's wording of xDSL's errors about missing tokens."""

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar, cast

from xdsl.context import Context
from xdsl.dialects.builtin import NoneType, StringAttr
from xdsl.ir import Attribute, TypeAttribute
from xdsl.parser import ParserState
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Input, Span
from xdsl.utils.mlir_lexer import MLIRToken, MLIRTokenKind, PunctuationSpelling

from sdy.diagnostics import DiagnosticError, Note, error
from sdy.ir.elements import TypedStringAttr
from sdy.ir.open_syntax import OpenParser
from sdy.parse_errors import parse_error
from sdy.text.lines import LineTable, end_of_code
from sdy.text.reading.lexer import KIND_OF_PUNCTUATION, LazyToken, Lexer

T = TypeVar("T")

_LARGEST_INTEGER = 2**63 - 1
_MAX_DIGITS = 4000
"""The longest literal converted to an integer: Python's conversion is quadratic and limited by default."""


def integer_value(text: str) -> int:
    """Return the value of an integer token; for thousands of digits, some value out of the range of every type."""
    if len(text) > _MAX_DIGITS:
        return 1 << 2 * _MAX_DIGITS
    return int(text, 16 if text[:2] in ("0x", "0X") else 10)  # `011` is decimal


class TokenParser(OpenParser):
    """Mixin of the parser for tokens; it runs for each token and is written for speed."""

    def __init__(self, context: Context, text: str, filename: str):
        super().__init__(context, "", filename)
        self.lines = LineTable(text, filename)
        self.start_with(ParserState(Lexer(Input(text, filename))))

    def error_at(self, offset: int, message: str, *notes: Note) -> DiagnosticError:
        """Return an error at an offset of the text."""
        return error(self.lines.place(offset), message, *notes)

    def raise_error(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, msg: str, at_position: Any = None, end_position: Any = None
    ) -> NoReturn:
        """Raise ParseError at a position, by default at the end of the code before the next token."""
        if at_position is not None:
            super().raise_error(MISSING_TOKEN_MESSAGES.get(msg, msg), at_position, end_position)
        if msg in UNEXPECTED_TOKEN_MESSAGES:
            raise parse_error(self, UNEXPECTED_TOKEN_MESSAGES[msg])
        source = self.lexer.input
        at_end = self.current_token.kind is MLIRTokenKind.EOF
        offset = end_of_code(source.content, max(self.pos - at_end, 0))
        raise ParseError(Span(offset, offset + 1, source), MISSING_TOKEN_MESSAGES.get(msg, msg))

    @property
    def pos(self) -> int:
        """The offset of the next token."""
        return cast(LazyToken, self.state.current_token).start

    def go_to(self, offset: int) -> None:
        """Continue with the token at or after an offset."""
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
        """Parse the punctuation, if it is next."""
        state = self.state
        if state.current_token.kind is not KIND_OF_PUNCTUATION[punctuation]:
            return None
        state.current_token = state.lexer.lex()
        return punctuation

    def parse_punctuation(self, punctuation: PunctuationSpelling, context_msg: str = "") -> PunctuationSpelling:
        """Parse the punctuation. Raises ParseError if another token is next."""
        state = self.state
        if state.current_token.kind is not KIND_OF_PUNCTUATION[punctuation]:
            self.raise_error(f"expected '{punctuation}'{context_msg}")
        state.current_token = state.lexer.lex()
        return punctuation

    def parse_characters(self, text: str, context_msg: str = "") -> str:
        """Parse the token with this text. Raises ParseError if another token is next."""
        if self.parse_optional_characters(text) is None:
            self.raise_error(f"expected '{text}'{context_msg}")
        return text

    def parse_keyword(self, keyword: str, context_msg: str = "") -> str:
        """Parse the keyword. Raises ParseError if another token is next."""
        if self.parse_optional_keyword(keyword) is None:
            raise parse_error(self, f"expected '{keyword}'{context_msg}")
        return keyword

    def parse_identifier(self, context_msg: str = "") -> str:
        """Parse an identifier. Raises ParseError if another token is next."""
        word = self.parse_optional_identifier()
        if word is None:
            raise parse_error(self, f"expected valid keyword{context_msg}")
        return word

    def parse_typed_attribute(self) -> Attribute:
        """Parse an attribute; a string may have a type, `"a" : i64`, unlike in the assembly formats of operations."""
        is_string = self.state.current_token.kind is MLIRTokenKind.STRING_LIT
        attribute = self.parse_attribute()
        if not is_string or not isinstance(attribute, StringAttr) or self.parse_optional_punctuation(":") is None:
            return attribute
        type_ = self.parse_type()
        return attribute if isinstance(type_, NoneType) else TypedStringAttr(attribute, type_)

    def parse_optional_integer(self, allow_boolean: bool = True, allow_negative: bool = True) -> int | None:
        """Parse an integer, if one is next. Raises ParseError if it does not fit in 64 bits."""
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
        """Parse an integer. Raises ParseError if another token is next."""
        number = self.parse_optional_integer(allow_boolean, allow_negative)
        if number is None:
            raise parse_error(self, f"expected integer value{context_msg}")
        return number

    def parse_symbol_name(self) -> StringAttr:
        """Parse a symbol name, `@name`. Raises ParseError if another token is next."""
        name = self.parse_optional_symbol_name()
        if name is None:
            raise parse_error(self, "expected valid '@'-identifier for symbol name")
        return name

    def parse_type(self) -> TypeAttribute:
        """Parse a type. Raises ParseError if another token is next."""
        type_ = self.parse_optional_type()
        if type_ is None:
            self.raise_error("expected non-function type")
        return type_

    def parse_attribute(self) -> Attribute:
        """Parse an attribute. Raises ParseError if another token is next."""
        attribute = self.parse_optional_attribute()
        if attribute is None:
            self.raise_error("expected attribute value")
        return attribute

    def parse_optional_characters(self, text: str) -> str | None:
        """Parse the token with this text, if it is next."""
        state = self.state
        if state.current_token.text != text:
            return None
        state.current_token = state.lexer.lex()
        return text

    def parse_optional_undelimited_comma_separated_list(
        self, parse_optional: Callable[[], T | None], parse: Callable[[], T]
    ) -> list[T] | None:
        """Parse a comma-separated list, if one starts here. A list of types starts unless a `)` is next."""
        closed = self.current_token.kind is MLIRTokenKind.R_PAREN
        if parse_optional == self.parse_optional_type and not closed:
            return self.parse_comma_separated_list(self.Delimiter.NONE, parse)
        return super().parse_optional_undelimited_comma_separated_list(parse_optional, parse)


MISSING_TOKEN_MESSAGES = {
    "'(' expected in operation argument list": "expected '(' to start operand list",
    "')' expected in operation argument list": "expected ')' to end operand list",
    "Attribute expected": "expected attribute value",
    "Expected '<' after `strided`": "expected '<' after 'strided'",
    "Expected a MemRef layout attribute": "expected attribute value",
    "Expected bare-id or string-literal here as part of attribute entry!": "expected attribute name",
    "Expected block argument!": "expected SSA operand",
    "Expected integer as SSA value tuple index": "invalid SSA value result number",
    "Expected either a float, integer, or complex literal": "expected element literal of primitive type",
    "Expected region!": "expected '{' to begin a region",
    "Expected shape type.": "expected non-function type",
    "Expected vector element type": "expected non-function type",
    "block argument expected": "expected SSA operand",
    "expected ':' after block argument name!": "expected ':'",
    "expected ':' in attribute type": "expected ':'",
    "expected ':' in dense array": "expected ':' after dense array type",
    "expected '<' in dense array": "expected '<' after 'array'",
    "expected '>' in dense array": "expected '>' to close an array attribute",
    "expected '=' after attribute alias name": "expected '=' in attribute alias definition",
    "expected '}' in operation region list": "expected ')' to end region list",
    "function type expected": "expected function type",
    "operand expected": "expected SSA operand",
}
"""Reported at the place of the missing token: after the preceding one."""

UNEXPECTED_TOKEN_MESSAGES = {
    "expect symbol name": "expected valid '@'-identifier for symbol name",
    "string literal expected": "expected string",
    "Expected float literal": "expected floating point literal",
}
"""Reported at the unexpected token, with the name of the operation being parsed."""
