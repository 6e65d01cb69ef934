"""Taking tokens one by one: what every rule of the parser is made of."""

from typing import cast

from xdsl.context import Context
from xdsl.parser import Parser as XDSLParser
from xdsl.parser import ParserState
from xdsl.utils.lexer import Input, Token
from xdsl.utils.mlir_lexer import MLIRTokenKind, PunctuationSpelling

from sdy.diagnostics import DiagnosticError, Note, error
from sdy.text.lexer import KIND_OF_PUNCTUATION, LazyToken, Lexer
from sdy.text.lines import LineTable


class TokenParser(XDSLParser):
    """The part of the parser that takes tokens; it runs for each one, so it calls as little as it can."""

    def __init__(self, context: Context, text: str, filename: str):
        super().__init__(context, "", filename)
        self.lines = LineTable(text, filename)
        self._parser_state = ParserState(Lexer(Input(text, filename)))

    def error_at(self, offset: int, message: str, *notes: Note) -> DiagnosticError:
        """An error at an offset of the text."""
        return error(self.lines.place(offset), message, *notes)

    @property
    def pos(self) -> int:
        """Where the next token starts."""
        return cast(LazyToken, self._parser_state.current_token).start

    def _parse_optional_token(self, expected_kind: MLIRTokenKind) -> Token[MLIRTokenKind, str] | None:
        state = self._parser_state
        token = state.current_token
        if token.kind is not expected_kind:
            return None
        state.current_token = state.lexer.lex()
        return token

    def parse_optional_punctuation(self, punctuation: PunctuationSpelling) -> PunctuationSpelling | None:
        """The punctuation, if it is next."""
        state = self._parser_state
        if state.current_token.kind is not KIND_OF_PUNCTUATION[punctuation]:
            return None
        state.current_token = state.lexer.lex()
        return punctuation

    def parse_punctuation(self, punctuation: PunctuationSpelling, context_msg: str = "") -> PunctuationSpelling:
        """The punctuation. Raises ParseError where something else is next."""
        state = self._parser_state
        if state.current_token.kind is not KIND_OF_PUNCTUATION[punctuation]:
            self.raise_error(f"expected '{punctuation}'{context_msg}")
        state.current_token = state.lexer.lex()
        return punctuation

    def parse_keyword(self, keyword: str, context_msg: str = "") -> str:
        """The keyword. Raises ParseError where something else is next."""
        if self.parse_optional_keyword(keyword) is None:
            self.raise_error(f"expected '{keyword}'{context_msg}")
        return keyword

    def parse_optional_characters(self, text: str) -> str | None:
        """The token with this text, if it is next."""
        state = self._parser_state
        if state.current_token.text != text:
            return None
        state.current_token = state.lexer.lex()
        return text
