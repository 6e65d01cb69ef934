"""The parser of dialect attributes and types, `#sdy.mesh<["x"=2]>`, and of aliases, `#map`."""

import re

from xdsl.context import Context
from xdsl.dialects.builtin import UnregisteredAttr
from xdsl.ir import Attribute, ParametrizedAttribute
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
    """Mixin of the parser for symbols that begin with `#` or `!`."""

    def __init__(self, context: Context, text: str, filename: str):
        super().__init__(context, text, filename)
        self._ends: dict[int, int] = {}

    def parse_extended_type_or_attribute(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, attr_or_dialect_name: str, is_type: bool
    ) -> Attribute:
        """Parse the attribute or type after `#` or `!`; one of an unregistered dialect is kept as text.

        As in MLIR, the dialect's parser need not consume the whole body: parsing continues after its closing bracket.
        """
        dialect, dot, _ = attr_or_dialect_name.partition(".")
        start = self.pos
        name_end = end_of_code(self.lexer.input.content, start)
        has_body = self.current_token.kind is MLIRTokenKind.LESS and (not dot or start == name_end)
        end = self._end_of_body(start) if has_body else name_end
        if not has_body and not dot:
            if ("!" if is_type else "#") + dialect not in self.attribute_aliases:
                self.raise_error(f"undefined symbol alias id '{dialect}'")
            return super().parse_extended_type_or_attribute(attr_or_dialect_name, is_type)
        if self.ctx.get_optional_dialect(dialect) is None:
            return self._parse_of_unknown_dialect(attr_or_dialect_name, is_type)
        self.go_to(end)
        if not is_type:
            self._skip_type()
        end = self.pos
        self.go_to(name_end - len(attr_or_dialect_name) + len(dialect) + 1 if dot else start + 1)
        name_start = self.pos
        if (name := self.parse_optional_identifier()) is None:
            self.raise_error("expected valid keyword", name_start)
        parsed = self._parse_known(f"{dialect}.{name}", is_type, name_start)
        self.go_to(end)
        return parsed

    def _skip_type(self) -> None:
        """Skip a trailing type, which the syntax allows for any attribute but no known one uses."""
        if self.parse_optional_punctuation(":") is not None:
            self.parse_type()

    def _parse_of_unknown_dialect(self, full_name: str, is_type: bool) -> Attribute:
        dialect, dot, name = full_name.partition(".")
        start = end_of_code(self.lexer.input.content, self.pos) - len(name) if dot else self.pos - len(dialect) - 1
        has_body = self.current_token.kind is MLIRTokenKind.LESS
        text = self.parse_dialect_symbol_body() if has_body else ""
        if dot:
            text = f"{name}<{text}>" if has_body else name
        match = _SYMBOL_NAME.match(text)
        full_name = f"{dialect}.{match[0] if match else ''}"
        known = self.ctx.get_optional_type(full_name) if is_type else self.ctx.get_optional_attr(full_name)
        if known is None or not issubclass(known, UnregisteredAttr):
            symbol = f'"{dialect}"<"{text}">'
            symbol_text = f"`!{symbol}` type" if is_type else f"#{symbol} : 'none' attribute"
            self.raise_error(
                f"{symbol_text} created with unregistered dialect. If this is intended, please call "
                "allowUnregisteredDialects() on the MLIRContext, or use -allow-unregistered-dialect with the MLIR opt "
                "tool used",
                start,
            )
        return known(full_name, is_type, True, text.removeprefix(match[0] if match else ""))

    def _end_of_body(self, start: int) -> int:
        """Return the end of the bracket that opens at `start`. Raises ParseError if brackets do not match."""
        if (known := self._ends.get(start)) is not None:
            return known
        last_string = start
        open_brackets: list[tuple[str, int]] = []
        for match in _BRACKET.finditer(self.lexer.input.content, start):
            bracket = match[0]
            if bracket in _CLOSED_BY:
                opening, opened_at = open_brackets[-1]
                if opening != _CLOSED_BY[bracket]:
                    break
                self._ends[opened_at] = match.end()
                open_brackets.pop()
                if not open_brackets:
                    return match.end()
            elif bracket[0] == '"':
                last_string = match.start()
            elif bracket != "->":
                open_brackets.append((bracket, match.start()))
        opening, _ = open_brackets[-1]
        return self.raise_error(f"unbalanced '{opening}' character in pretty dialect name", last_string)

    def _parse_known(self, attr_name: str, is_type: bool, start: int) -> Attribute:
        """Parse an attribute or type of a registered dialect after its name, which begins at `start`."""
        # A parameter may be a full attribute, `<#sdy.mesh<...>>`, but only inside brackets.
        if self.current_token.kind is MLIRTokenKind.HASH_IDENT:
            self.raise_error("expected '<'")
        known = (self.ctx.get_optional_type if is_type else self.ctx.get_optional_attr)(attr_name)
        dialect, _, name = attr_name.partition(".")
        message = (_UNKNOWN_TYPE if is_type else _UNKNOWN_ATTRIBUTE).get(dialect)
        # Only dialects may be unregistered: unknown symbols of these registered ones are errors.
        if known is None or (message is not None and issubclass(known, UnregisteredAttr)):
            message = message or "'{dialect}.{name}' is not registered"
            self.raise_error(message.format(dialect=dialect, name=name), start)
        if is_type and issubclass(known, ParametrizedAttribute) and not known.get_irdl_definition().parameters:
            return known.new(())
        try:
            return self.parse_dialect_type_or_attribute_body(attr_name, is_type, False, None)
        except ChainedParseError as problem:
            raise problem.close() from None
