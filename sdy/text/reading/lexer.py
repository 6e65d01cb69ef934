"""The lexer: each token is one match of a compiled regular expression."""

import re

from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Span
from xdsl.utils.mlir_lexer import (
    KIND_BY_PUNCTUATION_SPELLING,
    MLIRLexer,
    MLIRToken,
    MLIRTokenKind,
    StringLiteral,
)

from sdy.ir.open_syntax import Text, TextSpan


class LazyToken(MLIRToken):
    """A token with its text and offsets; the span is built on access."""

    __slots__ = ("_source", "end", "kind", "start", "text")

    def __init__(self, kind: MLIRTokenKind, text: str, start: int, end: int, source: Text):
        self.kind = kind
        self.text = text  # pyright: ignore[reportAttributeAccessIssue, reportIncompatibleMethodOverride]
        self.start = start
        self.end = end
        self._source = source

    @property
    def span(self) -> TextSpan:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The token's place in the source."""
        return Span(self.start, self.end, self._source)


VALUE_NAME = r"(?:[0-9]++|[a-zA-Z$._-][a-zA-Z0-9$._-]*+)"
BARE_NAME = r"[a-zA-Z_][a-zA-Z0-9_$.]*+"
_STRING = r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"'

# The order of alternatives matters: `0x1F` before `0`, `1.5` before `1`, `->` before `-`.
_KINDS: tuple[tuple[MLIRTokenKind | None, str], ...] = (
    (MLIRTokenKind.BARE_IDENT, BARE_NAME),
    (MLIRTokenKind.PERCENT_IDENT, "%" + VALUE_NAME),
    (None, r"->|\.\.\.|\{-#|#-\}|[-:,=>{(\[<+?/})\]*|]"),
    (MLIRTokenKind.FLOAT_LIT, r"[0-9]++\.[0-9]*+(?:[eE][+-]?[0-9]++)?"),
    (MLIRTokenKind.INTEGER_LIT, r"0x[0-9a-fA-F]++|[0-9]++"),
    (MLIRTokenKind.STRING_LIT, _STRING),
    (MLIRTokenKind.HASH_IDENT, "#" + VALUE_NAME),
    (MLIRTokenKind.AT_IDENT, f"@(?:{BARE_NAME}|{_STRING})"),
    (MLIRTokenKind.EXCLAMATION_IDENT, "!" + VALUE_NAME),
    (MLIRTokenKind.CARET_IDENT, r"\^" + VALUE_NAME),
    (MLIRTokenKind.EOF, r"\Z"),
)
SKIPPED = r"(?:[ \t\r\n]++|//[^\n]*+)*+"
_TOKEN = re.compile(SKIPPED + "(?:" + "|".join(f"({pattern})" for _, pattern in _KINDS) + ")")
_SPACE = re.compile(SKIPPED)
_STRING_BEGINNING = re.compile(r'@?"(?:[^"\\\n\v\f]|\\["\\nt]|\\[0-9a-fA-F]{2})*')
"""The valid beginning of an unterminated or malformed string."""
# Indexed by the number of the matched group; None is punctuation, whose kind depends on its spelling.
_KIND_OF_GROUP = (None, *(kind for kind, _ in _KINDS))
KIND_OF_PUNCTUATION: dict[str, MLIRTokenKind] = {**KIND_BY_PUNCTUATION_SPELLING}


class Lexer(MLIRLexer):
    """xDSL's lexer with the same tokens, matched by one regular expression."""

    def lex(self) -> LazyToken:
        """Return the next token. Raises ParseError if the text has none here."""
        match = _TOKEN.match(self.input.content, self.pos)
        if match is None:
            raise self._no_token()
        group = match.lastindex or 0
        text = match[group]
        start, end = match.span(group)
        self.pos = end
        kind = _KIND_OF_GROUP[group] or KIND_OF_PUNCTUATION[text]
        if kind is MLIRTokenKind.STRING_LIT and "\\" in text and not _is_utf8(Span(start, end, self.input)):
            kind = MLIRTokenKind.BYTES_LIT
        return LazyToken(kind, text, start, end, self.input)

    def _no_token(self) -> ParseError:
        skipped = _SPACE.match(self.input.content, self.pos)
        start = skipped.end() if skipped else self.pos
        character = self.input.content[start]
        span = Span(start, start + 1, self.input)
        if (beginning := _STRING_BEGINNING.match(self.input.content, start)) is None:
            return ParseError(span, f"unexpected character '{character}'")
        end = beginning.end()
        if self.input.content.startswith("\\", end):
            return ParseError(Span(end, end + 1, self.input), "unknown escape in string literal")
        return ParseError(span, "expected '\"' in string literal")


def _is_utf8(span: TextSpan) -> bool:
    try:
        StringLiteral.from_span(span).bytes_contents.decode()
    except UnicodeDecodeError:
        return False
    return True
