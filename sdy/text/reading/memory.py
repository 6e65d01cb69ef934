"""What has been read before is recognised by its text.

A program of ten thousand operations has a few hundred types and attributes. Each is parsed where it first stands; from
then on its text leads to the same object, so that comparing two of them later is comparing where they are in memory.
Tensor types that need nothing but their text to be understood are the same objects in all modules.
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
    """The expression of `<...>` with so many levels of `<...>` in it."""
    inner = f"|{_bracketed(depth - 1)}" if depth else ""
    return rf'<(?:[^<>"-]++|->|-|{_IN_STRING}{inner})*+>'


# What a type or an attribute that starts here extends to, for those worth remembering.
_TYPE = re.compile(rf"(tensor<[\w?]*>)|\w+(?:{_bracketed(2)})?")
_ATTRIBUTE = re.compile(rf"#[\w.]+{_bracketed(5)}|array{_bracketed(0)}|dense<[^<>]{{0,64}}> : tensor{_bracketed(1)}")
_FUNCTION_TYPE = re.compile(rf"\([^()\n]*+\) -> (?:\([^()\n]*+\)|[\w.$]++(?:{_bracketed(2)})?)")
_REMEMBERED_WORDS = frozenset({"array", "dense"})

_tensor_types: dict[str, TypeAttribute] = {}
"""The tensor types that mean the same in all modules, so that what passes know of them holds for the next one too."""
_MOST = 2**14
"""So many are remembered before all are forgotten, so that a process that lives long does not grow."""


class RememberingParser(TypeParser):
    """The part of the parser that remembers."""

    def __init__(self, context: Context, text: str, filename: str):
        super().__init__(context, text, filename)
        self._types: dict[str, TypeAttribute] = {}
        self._attributes: dict[str, Attribute] = {}
        self._function_types: dict[str, FunctionType] = {}

    def parse_optional_type(self) -> TypeAttribute | None:
        """A type, if one starts here; the same object when its text has been seen before."""
        if self.current_token.kind is not MLIRTokenKind.BARE_IDENT:
            return super().parse_optional_type()
        match = _TYPE.match(self.lexer.input.content, self.pos)
        if match is None or not match[1]:
            return self.remembered(self._types, match, super().parse_optional_type)
        if len(_tensor_types) >= _MOST:
            _tensor_types.clear()
        return self.remembered(_tensor_types, match, super().parse_optional_type)

    def parse_optional_attribute(self) -> Attribute | None:
        """An attribute, if one starts here; the same object when its text has been seen before."""
        token = self.current_token
        if token.kind is not MLIRTokenKind.HASH_IDENT and token.text not in _REMEMBERED_WORDS:
            return super().parse_optional_attribute()
        match = _ATTRIBUTE.match(self.lexer.input.content, self.pos)
        return self.remembered(self._attributes, match, super().parse_optional_attribute)

    def parse_optional_function_type(self) -> FunctionType | None:
        """A function type, if one starts here; the same object when its text has been seen before."""
        match = _FUNCTION_TYPE.match(self.lexer.input.content, self.pos)
        return self.remembered(self._function_types, match, self._new_function_type)

    def _new_function_type(self) -> FunctionType | None:
        inputs = self.parse_optional_comma_separated_list(self.Delimiter.PAREN, self.parse_type)
        if inputs is None:
            return None
        self.parse_punctuation("->", " in function type")
        outputs = self.parse_optional_comma_separated_list(self.Delimiter.PAREN, self.parse_type)
        return FunctionType.from_lists(inputs, [self.parse_type()] if outputs is None else outputs)

    def remembered(self, memory: dict[str, T], match: re.Match[str] | None, parse: Callable[[], T | None]) -> T | None:
        """What `parse` makes of the text from here on, remembered if it takes exactly the text of `match`."""
        if match is None:
            return parse()
        known = memory.get(match[0])
        if known is not None:
            self.go_to(match.end())
            return known
        parsed = parse()
        if parsed is not None and self.stands_at(match.end()):
            memory[match[0]] = parsed
        return parsed

    def stands_at(self, offset: int) -> bool:
        """Whether what has been parsed ends at an offset, up to space."""
        return self.pos >= offset and not self.lexer.input.content[offset : self.pos].strip()
