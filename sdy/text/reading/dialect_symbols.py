"""Attributes and types of dialects, `#sdy.mesh<["x"=2]>`, and aliases of attributes and types, `#map`."""

import re

from xdsl.context import Context
from xdsl.dialects.builtin import UnregisteredAttr
from xdsl.ir import Attribute, TypeAttribute
from xdsl.utils.mlir_lexer import MLIRTokenKind

from sdy.parse_errors import ChainedParseError
from sdy.text.lines import end_of_code
from sdy.text.reading.tokens import TokenParser

_CLOSED_BY = {">": "<", "]": "[", ")": "(", "}": "{"}
_BRACKET = re.compile(r'->|[<>()\[\]{}]|"(?:[^"\\\n]|\\.)*+"')
_SYMBOL_NAME = re.compile(r"[A-Za-z][\w.]*+|")
_UNKNOWN_ATTRIBUTE = {
    "chlo": "unknown chlo attribute",
    "sdy": "unknown attribute `{name}` in dialect `sdy`",
    "stablehlo": "unknown StableHLO attribute",
}
_UNKNOWN_TYPE = {
    "chlo": "dialect 'chlo' provides no type parsing hook",
    "sdy": "dialect 'sdy' provides no type parsing hook",
    "stablehlo": "unknown stablehlo type: {name}",
}


class DialectSymbolParser(TokenParser):
    """The part of the parser that reads what begins with `#` or `!`."""

    def __init__(self, context: Context, text: str, filename: str):
        super().__init__(context, text, filename)
        self._balanced_until = 0

    def parse_extended_type_or_attribute(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, attr_or_dialect_name: str, is_type: bool
    ) -> Attribute:
        """What follows `!` or `#`: of a dialect that is not known it is kept as it stands."""
        dialect, dot, _ = attr_or_dialect_name.partition(".")
        has_body = self.current_token.kind is MLIRTokenKind.LESS
        if has_body:
            self._check_brackets()
        elif not dot and ("!" if is_type else "#") + dialect not in self.attribute_aliases:
            self.raise_error(f"undefined symbol alias id '{dialect}'")
        if not (dot or has_body):
            return super().parse_extended_type_or_attribute(attr_or_dialect_name, is_type)
        if self.ctx.get_optional_dialect(dialect) is None:
            return self._parse_of_unknown_dialect(attr_or_dialect_name, is_type)
        if not has_body and not is_type:
            self._pass_over_type()
        found = super().parse_extended_type_or_attribute(attr_or_dialect_name, is_type)
        if has_body and not is_type:
            self._pass_over_type()
        return found

    def _pass_over_type(self) -> None:
        """Read the type that any attribute may say it has, and none that is known has use for."""
        if self.parse_optional_punctuation(":") is not None:
            self.parse_type()

    def _parse_of_unknown_dialect(self, full_name: str, is_type: bool) -> Attribute:
        dialect, dot, name = full_name.partition(".")
        has_body = self.current_token.kind is MLIRTokenKind.LESS
        text = self.parse_dialect_symbol_body() if has_body else ""
        if dot:
            text = f"{name}<{text}>" if has_body else name
        match = _SYMBOL_NAME.match(text)
        full_name = f"{dialect}.{match[0] if match else ''}"
        known = self.ctx.get_optional_type(full_name) if is_type else self.ctx.get_optional_attr(full_name)
        if known is None or not issubclass(known, UnregisteredAttr):
            self.raise_error(f"'{full_name}' is not registered")
        return known(full_name, is_type, True, text.removeprefix(match[0] if match else ""))

    def _check_brackets(self) -> None:
        """Raises ParseError where the brackets of what starts here do not match, before any of it is read."""
        start = self.pos
        if start < self._balanced_until:
            return
        told_at = start
        open_brackets: list[str] = []
        for match in _BRACKET.finditer(self.lexer.input.content, start):
            found = match[0]
            if found in _CLOSED_BY:
                if open_brackets[-1] != _CLOSED_BY[found]:
                    break
                open_brackets.pop()
                if not open_brackets:
                    self._balanced_until = match.end()
                    return
            elif found[0] == '"':
                told_at = match.start()
            elif found != "->":
                open_brackets.append(found)
        self.raise_error(f"unbalanced '{open_brackets[-1]}' character in pretty dialect name", told_at)

    def parse_dialect_type_or_attribute_body(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, attr_name: str, is_type: bool, is_opaque: bool, starting_opaque_pos: int | None
    ) -> TypeAttribute | Attribute:
        # A parameter may be a whole attribute, `<#sdy.mesh<...>>`, but never without the brackets around it.
        if not is_opaque and self.current_token.kind is MLIRTokenKind.HASH_IDENT:
            self.raise_error("expected '<'")
        known = (self.ctx.get_optional_type if is_type else self.ctx.get_optional_attr)(attr_name)
        dialect, _, name = attr_name.partition(".")
        said = (_UNKNOWN_TYPE if is_type else _UNKNOWN_ATTRIBUTE).get(dialect)
        # What is allowed not to be registered is a dialect: all is known of these.
        if known is None or (said is not None and issubclass(known, UnregisteredAttr)):
            said = said or "'{dialect}.{name}' is not registered"
            end = end_of_code(self.lexer.input.content, self.pos)
            self.raise_error(said.format(dialect=dialect, name=name), end - len(name))
        try:
            return super().parse_dialect_type_or_attribute_body(attr_name, is_type, is_opaque, starting_opaque_pos)
        except ChainedParseError as problem:
            raise problem.close() from None
