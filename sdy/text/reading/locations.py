"""The parser of the locations of operations and block arguments: `loc(...)`, or else the place in the text.

The default location of an operation is that of its name. `sdy.diagnostics.location_of` converts a location to a file
position.
"""

import re

from xdsl.dialects.builtin import (
    LocationAttr,
    NoneAttr,
    UnknownLoc,
)
from xdsl.ir import Attribute
from xdsl.parser import Parser as XDSLParser
from xdsl.utils.mlir_lexer import MLIRTokenKind

from sdy.ir.locations import call_site, file_range, fused, named
from sdy.text.reading.tokens import TokenParser

_ALIAS = r"(#[\w$.-]+)"
_NUMBER = r"(\d{1,9})"

ALIASED = re.compile(rf"loc\({_ALIAS}\)")
"""A location alias, the form that most operations use."""

_ALIAS_DEFINITION = re.compile(rf"^[ \t]*{_ALIAS}[ \t]*=", re.MULTILINE)

_COMMON_LOCATION = re.compile(
    r' loc\((?:"([^"\\\n\v\f]*+)"'
    rf"(?:\({_ALIAS}\)|:{_NUMBER}:{_NUMBER}(?: to {_NUMBER}?:{_NUMBER})?)?"
    rf"|callsite\({_ALIAS} at {_ALIAS}\))\)(?=\n)"
)
"""The definitions of nearly all location aliases, as MLIR prints them.

`"f"`, `"f"(#loc1)`, `"f.py":1:2 to :3`, `callsite(#loc1 at #loc2)`."""


class LocationParser(TokenParser):
    """Mixin of the parser for locations."""

    _later_aliases: dict[str, re.Match[str]] | None = None
    """The alias definitions after the first forward reference, by name; None before there is one."""

    _parsed_early: dict[int, int]
    """The end offset of each definition that was parsed at a forward reference, by start offset."""

    def parse_optional_location(self) -> LocationAttr | None:
        """Parse `loc(...)`, if it starts here; an alias is matched without lexing its tokens."""
        if self.current_token.text != "loc":
            return None
        if match := ALIASED.match(self.lexer.input.content, self.pos):
            location = self.aliased_location(match[1])
            if location is not None:
                self.go_to(match.end())
                return location
        return super().parse_optional_location()

    def parse_optional_argument(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, expect_type: bool = True
    ) -> XDSLParser.UnresolvedArgument | XDSLParser.Argument | None:
        """Parse a block argument and its location, if they start here."""
        argument = super().parse_optional_argument(expect_type)
        if isinstance(argument, XDSLParser.Argument):
            argument.location = self.parse_optional_location()
        return argument

    def aliased_location(self, name: str) -> LocationAttr | None:
        """Return the location of an alias, which may be defined later; None if it is undefined or not a location."""
        if name not in self.attribute_aliases and name in self._definitions_below():
            self._read_definition(name)
        location = self.attribute_aliases.get(name)
        return location if isinstance(location, LocationAttr) else None

    def parse_location(self) -> LocationAttr:
        if self.current_token.kind is MLIRTokenKind.HASH_IDENT:
            return self._location_alias()
        if (text := self.parse_optional_str_literal()) is not None:
            return self._location_from_string(text)
        match self.parse_optional_identifier():
            case "unknown":
                return UnknownLoc()
            case "callsite":
                with self.in_parens():
                    callee = self.parse_location()
                    self.parse_keyword("at")
                    return call_site(callee, self.parse_location())
            case "fused":
                metadata: Attribute = NoneAttr()
                if self.parse_optional_punctuation("<") is not None:
                    metadata = self.parse_attribute()
                    self.parse_punctuation(">")
                parts = self.parse_comma_separated_list(self.Delimiter.SQUARE, self.parse_location)
                return fused(parts, metadata)
            case _:
                return self.raise_error("expected location instance")

    def _location_from_string(self, text: str) -> LocationAttr:
        if self.parse_optional_punctuation(":") is not None:
            return self._file_location(text)
        child: LocationAttr | NoneAttr = NoneAttr()
        if self.parse_optional_punctuation("(") is not None:
            child = self.parse_location()
            self.parse_punctuation(")")
        return named(text, child)

    def _file_location(self, filename: str) -> LocationAttr:
        """Parse a line, a line and column, or a range."""
        line, column = self.parse_integer(False, False), 0
        if self.parse_optional_punctuation(":") is not None:
            column = self.parse_integer(False, False)
        end_line, end_column = line, column
        if self.parse_optional_keyword("to") is not None:
            end_line = self.parse_optional_integer(False, False)
            self.parse_punctuation(":")
            end_column = self.parse_integer(False, False)
        return file_range(filename, line, column, line if end_line is None else end_line, end_column)

    def _location_alias(self) -> LocationAttr:
        """Parse an alias of a location, which may be defined later: MLIR prints deferred aliases at the end."""
        token = self.current_token
        name = token.text
        if name not in self.attribute_aliases:
            self._read_definition(name)
        location = self.attribute_aliases[name]
        if not isinstance(location, LocationAttr):
            self.raise_error(f"expected location, but '{name}' is another attribute", token.span)
        self.go_to(token.span.end)
        return location

    def _definitions_below(self) -> dict[str, re.Match[str]]:
        if self._later_aliases is None:
            content = self.lexer.input.content
            self._later_aliases = {m[1]: m for m in _ALIAS_DEFINITION.finditer(content, self.pos)}
            self._parsed_early = {}
        return self._later_aliases

    def _read_definition(self, name: str) -> None:
        definition = self._definitions_below().pop(name, None)
        if definition is None:
            self.raise_error(f"operation location alias was never defined: '{name}'")
        begin = definition.end()
        parsed = self._common_location(begin) or self._any_attribute(begin)
        self.attribute_aliases[name], self._parsed_early[definition.start(1)] = parsed

    def _common_location(self, begin: int) -> tuple[LocationAttr, int] | None:
        """Match a common form of location at `begin`; return it and its end."""
        match = _COMMON_LOCATION.match(self.lexer.input.content, begin)
        if match is None:
            return None
        text, child, line, column, end_line, end_column, callee, caller = match.groups()
        location: LocationAttr | None = None
        if callee is not None:
            called, calling = self.aliased_location(callee), self.aliased_location(caller)
            if called is not None and calling is not None:
                location = call_site(called, calling)
        elif line is not None:
            location = file_range(text, int(line), int(column), int(end_line or line), int(end_column or column))
        elif child is None:
            location = named(text, NoneAttr())
        elif (inner := self.aliased_location(child)) is not None:
            location = named(text, inner)
        return None if location is None else (location, match.end())

    def _any_attribute(self, begin: int) -> tuple[Attribute, int]:
        """Parse any attribute at `begin` without moving the parser; return it and its end."""
        here = self.pos
        self.resume_from(begin)
        attribute, end = self.parse_optional_location() or self.parse_attribute(), self.pos
        self.resume_from(here)
        return attribute, end

    def parse_alias_def(self) -> None:
        end = self._parsed_early.pop(self.pos, None) if self._later_aliases is not None else None
        if end is None:
            super().parse_alias_def()
        else:
            self.go_to(end)
