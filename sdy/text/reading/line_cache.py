"""The parse cache of one-line operations, by their line without the names of values.

    %5 = stablehlo.add %3, %4 : tensor<8x4xf32>        %9 = stablehlo.add %7, %7 : tensor<8x4xf32>

The layers of a deep model repeat a few hundred lines on other values. The first of each is parsed token by token; for
the others the text between the names is the key of the cached operation, which is built with new operands. The line
may end with the alias of a location, ` loc(#loc3)`, which is not part of the key.

The result of parsing an operation depends only on its text and on the first token after it, so the key contains both.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, LocationAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from sdy.ir.building import append, copy, make
from sdy.text.reading.attribute_cache import AttributeCacheParser
from sdy.text.reading.lexer import BARE_NAME, SKIPPED, VALUE_NAME
from sdy.text.reading.locations import ALIASED, LocationParser
from sdy.text.reading.values import ValueParser
from sdy.text.verification import is_valid_with_other_operands

_USE = re.compile(rf"%({VALUE_NAME}(?:#[0-9]++)?)")
_LINE = re.compile(rf'(?:%({VALUE_NAME})(:[0-9]++)? = )?+([^\n]{{1,4096}}+)\n{SKIPPED}(?=(%|"|{BARE_NAME}|.|))')
_TEXT_GROUP = 3
_ALIAS_LOCATION = "at the location of an alias"


class Line(NamedTuple):
    """A line of text that may be an operation with at most one result name."""

    begin: int
    """The offset of its first token."""

    start: int
    """The offset of the operation's name."""

    end: int
    """The offset of the token after the line."""

    result: str | None
    """The name of the operation's results, without `%`."""

    uses: list[str]
    """The names of the values used, without `%`, in order."""

    location: str | None
    """The alias of the location at the end of the line, with `#`."""

    key: tuple[str, ...]
    """Everything else that the parsed operation depends on."""


class _CachedOperation(NamedTuple):
    """The constructor arguments of a cached operation, with its location as an offset from its name."""

    op_class: type[Operation]
    operand_types: list[Attribute]
    result_types: list[Attribute]
    properties: dict[str, Attribute]
    attributes: dict[str, Attribute]
    regions: list[Region]
    offset: int
    is_valid: bool
    """True if the copies need no verification once the first operation is verified."""


class LineCacheParser(  # pyright: ignore[reportIncompatibleMethodOverride]
    LocationParser, AttributeCacheParser, ValueParser
):
    """Mixin of the parser that caches lines; it runs for each operation and is written for speed."""

    def __init__(self, context: Context, text: str, filename: str):
        super().__init__(context, text, filename)
        self.to_verify: list[Operation] = []
        """The operations whose validity does not follow from that of a cached one."""
        self._cached: dict[tuple[str | int, ...], _CachedOperation] = {}
        """Cached operations by the key of their line; with repeated operands, the key includes which are equal."""

    def line_at(self, offset: int) -> Line | None:
        """Return the line that starts at an offset, None if it is too long for the cache."""
        match = _LINE.match(self.lexer.input.content, offset)
        if match is None:
            return None
        result, count, text, next_token = match.groups()
        location = None
        if text.endswith(")"):
            code, _, last = text.rpartition(" ")
            if code and (aliased := ALIASED.fullmatch(last)):
                text, location = code, aliased[1]
        parts = _USE.split(text)
        at = "" if location is None else _ALIAS_LOCATION
        key = (self.state.dialect_stack[-1], next_token, count or "", at, *parts[::2])
        return Line(offset, match.start(_TEXT_GROUP), match.end(), result, parts[1::2], location, key)

    def parse_cached_lines(self, block: Block) -> None:
        """Append the operations of the next lines to `block`, as long as they are in the cache."""
        begin = end = self.pos
        while (line := self.line_at(end)) is not None and (op := self.cached_operation(line)) is not None:
            append(block, op)
            end = line.end
        if end != begin:
            self.go_to(end)

    def cached_operation(self, line: Line) -> Operation | None:
        """Return a new operation for a line and define its results; None if the line is not cached."""
        operands = self._values(line.uses)
        if operands is None:
            return None
        cached = self._cached.get(line.key) or self._cached.get(_key_on(line, operands))
        if cached is None:
            return None
        op_class, operand_types, result_types, properties, attributes, regions, offset, is_valid = cached
        if [operand.type for operand in operands] != operand_types:
            return None
        if line.location is None:
            location = self.lines.attribute(line.start + offset)
        elif (location := self.aliased_location(line.location)) is None:
            return None
        copies = [copy(region, location) for region in regions]
        op = make(op_class, operands, result_types, properties, attributes, copies, location)
        if not is_valid:
            self.to_verify.append(op)
        if line.result is not None:
            self.define(line.result, op.results, line.begin)
        return op

    def cache_line(self, line: Line, op: Operation) -> None:
        """Cache `op` as the result of parsing a line, if the result is the same for other values."""
        if op.successors or not self.is_at(line.end) or any("loc(" in part for part in line.key):
            return
        operands = [*op.operands]
        if self._values(line.uses) != operands:
            return
        offset = self._location_offset(line, op.location)
        if offset is None or not all(_is_self_contained(region, op.location) for region in op.regions):
            return
        self._cached[_key_on(line, operands)] = _CachedOperation(
            type(op),
            [operand.type for operand in operands],
            [result.type for result in op.results],
            op.properties.copy(),
            op.attributes.copy(),
            [region.clone() for region in op.regions],
            offset,
            is_valid_with_other_operands(op),
        )

    def _location_offset(self, line: Line, location: LocationAttr) -> int | None:
        """Return the offset of a location from the operation's name, 0 for the alias at the line's end, or None."""
        if line.location is not None:
            return 0 if location is self.attribute_aliases.get(line.location) else None
        start = self.lines.attribute(line.start)
        if not isinstance(location, FileLineColLoc) or location.line != start.line:
            return None
        return location.column.data - start.column.data

    def _values(self, uses: list[str]) -> list[SSAValue] | None:
        """Return the values of these names, None if one is not yet defined."""
        values: list[SSAValue] = []
        for name in uses:
            named = self.ssa_values.get(name) or self._numbered_result(name)
            if not named:
                return None
            values.append(named[0])
        return values

    def _numbered_result(self, name: str) -> Sequence[SSAValue]:
        """Return the results from number 1 on for `31#1`; empty if undefined."""
        name, _, number = name.partition("#")
        return self.ssa_values.get(name, ())[int(number) :] if number else ()


def _key_on(line: Line, values: Sequence[SSAValue]) -> tuple[str | int, ...]:
    """Return the key of a line, extended by which of its values are equal if some are."""
    numbers: dict[int, int] = {}
    places = [numbers.setdefault(id(value), len(numbers)) for value in values]
    return line.key if len(numbers) == len(values) else (*line.key, *places)


def _is_self_contained(region: Region, location: LocationAttr) -> bool:
    """Return whether a region captures no values and its operations and arguments all have this location."""
    inside: set[SSAValue] = {value for block in region.blocks for value in block.args}
    for op in region.walk():
        inside.update(op.results)
        if op.regions or op.successors or op.location != location or not inside.issuperset(op.operands):
            return False
    return all(argument.location == location for block in region.blocks for argument in block.args)
