"""The parse cache of types and attributes, by their text.

A program of ten thousand operations has a few hundred different types and attributes. Each is parsed once and interned,
so that comparing two of them later is mostly a comparison of identities. Tensor types that do not depend on aliases are
interned across modules.
"""

import re
from collections.abc import Callable
from typing import TypeVar

from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType
from xdsl.ir import Attribute, TypeAttribute
from xdsl.utils.mlir_lexer import MLIRTokenKind

from sdy.text.reading.builtin_types import TypeParser

T = TypeVar("T")

_IN_STRING = r'"(?:[^"\\\n]++|\\.)*+"'


def _bracketed(depth: int) -> str:
    """Return a regular expression of `<...>` with up to `depth` levels of nested `<...>`."""
    inner = f"|{_bracketed(depth - 1)}" if depth else ""
    return rf'<(?:[^<>"-]++|->|-|{_IN_STRING}{inner})*+>'


# The extent of the types and attributes that are cached.
_TYPE = re.compile(rf"(tensor<[\w?]*>)|\w+(?:{_bracketed(2)})?")
_ATTRIBUTE = re.compile(rf"#[\w.]+{_bracketed(5)}|array{_bracketed(0)}|dense<[^<>]{{0,64}}> : tensor{_bracketed(1)}")
_FUNCTION_TYPE = re.compile(rf"\([^()\n]*+\) -> (?:\([^()\n]*+\)|[\w.$]++(?:{_bracketed(2)})?)")
_CACHED_KEYWORDS = frozenset({"array", "dense"})

_tensor_types: dict[str, TypeAttribute] = {}
"""Tensor types, interned across modules, so that caches keyed by type identity persist too."""
_CACHE_SIZE = 2**14
"""The cache is cleared at this size, which bounds the memory of a long-lived process."""


class AttributeCacheParser(TypeParser):
    """Mixin of the parser that caches types and attributes."""

    def __init__(self, context: Context, text: str, filename: str):
        super().__init__(context, text, filename)
        self._types: dict[str, TypeAttribute] = {}
        self._attributes: dict[str, Attribute] = {}
        self._function_types: dict[str, FunctionType] = {}

    def parse_optional_type(self) -> TypeAttribute | None:
        """Parse a type, if one starts here, through the cache."""
        if self.current_token.kind is not MLIRTokenKind.BARE_IDENT:
            return super().parse_optional_type()
        match = _TYPE.match(self.lexer.input.content, self.pos)
        if match is None or not match[1]:
            return self.cached(self._types, match, super().parse_optional_type)
        if len(_tensor_types) >= _CACHE_SIZE:
            _tensor_types.clear()
        return self.cached(_tensor_types, match, super().parse_optional_type)

    def parse_optional_attribute(self) -> Attribute | None:
        """Parse an attribute, if one starts here, through the cache."""
        token = self.current_token
        if token.kind is not MLIRTokenKind.HASH_IDENT and token.text not in _CACHED_KEYWORDS:
            return super().parse_optional_attribute()
        match = _ATTRIBUTE.match(self.lexer.input.content, self.pos)
        return self.cached(self._attributes, match, super().parse_optional_attribute)

    def parse_optional_function_type(self) -> FunctionType | None:
        """Parse a function type, if one starts here, through the cache."""
        match = _FUNCTION_TYPE.match(self.lexer.input.content, self.pos)
        return self.cached(self._function_types, match, self._new_function_type)

    def _new_function_type(self) -> FunctionType | None:
        inputs = self.parse_optional_comma_separated_list(self.Delimiter.PAREN, self.parse_type)
        if inputs is None:
            return None
        self.parse_punctuation("->", " in function type")
        outputs = self.parse_optional_comma_separated_list(self.Delimiter.PAREN, self.parse_type)
        return FunctionType.from_lists(inputs, [self.parse_type()] if outputs is None else outputs)

    def cached(self, cache: dict[str, T], match: re.Match[str] | None, parse: Callable[[], T | None]) -> T | None:
        """Look up the text of `match`; on a miss call `parse` and cache its result if it consumes exactly this text."""
        if match is None:
            return parse()
        known = cache.get(match[0])
        if known is not None:
            self.go_to(match.end())
            return known
        parsed = parse()
        if parsed is not None and self.is_at(match.end()):
            cache[match[0]] = parsed
        return parsed

    def is_at(self, offset: int) -> bool:
        """Return whether the next token is at `offset` or follows it after whitespace only."""
        return self.pos >= offset and not self.lexer.input.content[offset : self.pos].strip()
