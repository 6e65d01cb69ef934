"""Operations of one line, recognised by what their line says apart from the names of values.

    %5 = stablehlo.add %3, %4 : tensor<8x4xf32>        %9 = stablehlo.add %7, %7 : tensor<8x4xf32>

The layers of a deep model repeat the same few hundred lines on other values. The first is read token by token; from
then on what stands between the names leads to what was made of it, so that what is left to do for an operation is to
look up its operands and to make it. It may end with the alias of a location, ` loc(#loc3)`, which each has its own of.

What an operation is read as depends on its own text and on the first token after it alone, so that both are looked at.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, LocationAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from sdy.ir.building import append, copy, make
from sdy.text.reading.lexer import BARE_NAME, SKIPPED, VALUE_NAME
from sdy.text.reading.locations import ALIASED, LocationParser
from sdy.text.reading.memory import RememberingParser
from sdy.text.reading.values import ValueParser
from sdy.text.verification.verifier import is_valid_as_its_like

_USE = re.compile(rf"%({VALUE_NAME}(?:#[0-9]++)?)")
_LINE = re.compile(rf'(?:%({VALUE_NAME})(:[0-9]++)? = )?+([^\n]{{1,4096}}+)\n{SKIPPED}(?=(%|"|{BARE_NAME}|.|))')
_TEXT = 3
_AT_ALIAS = "at the location of an alias"


class Line(NamedTuple):
    """A line of text that may be an operation whose results, if any, have one name."""

    begin: int
    """Where its first token stands."""

    start: int
    """Where the operation's name stands."""

    end: int
    """Where the next token stands."""

    result: str | None
    """The name of the operation's results, without `%`."""

    uses: list[str]
    """The names in it, without `%`, in order."""

    location: str | None
    """The alias, with `#`, of the location that it ends with, if so."""

    key: tuple[str, ...]
    """All else on which it depends what is read."""


class _Made(NamedTuple):
    """What an operation was made of, and how far behind the beginning of its name it says that it stands."""

    op_class: type[Operation]
    operand_types: list[Attribute]
    result_types: list[Attribute]
    properties: dict[str, Attribute]
    attributes: dict[str, Attribute]
    regions: list[Region]
    place: int
    is_verified: bool
    """Whether each such operation is valid if the first one is, wherever it stands."""


class RepeatedLineParser(  # pyright: ignore[reportIncompatibleMethodOverride]
    LocationParser, RememberingParser, ValueParser
):
    """The part of the parser that remembers lines; it runs for each operation, so it calls as little as it can."""

    def __init__(self, context: Context, text: str, filename: str):
        super().__init__(context, text, filename)
        self.to_verify: list[Operation] = []
        """Those that the validity of others that were read before does not tell the validity of."""
        self._made_of: dict[tuple[str | int, ...], _Made] = {}
        """What was read on different values, by the key of its line, holds where some are the same too; what was read
        where some are the same holds where the same ones are, by `_key_on`."""

    def line_at(self, offset: int) -> Line | None:
        """The line that starts with the token at an offset, None for one too long to be worth remembering."""
        match = _LINE.match(self.lexer.input.content, offset)
        if match is None:
            return None
        result, count, text, next_token = match.groups()
        location = None
        if text.endswith(")"):
            said, _, last = text.rpartition(" ")
            if said and (aliased := ALIASED.fullmatch(last)):
                text, location = said, aliased[1]
        parts = _USE.split(text)
        at = "" if location is None else _AT_ALIAS
        key = (self.state.dialect_stack[-1], next_token, count or "", at, *parts[::2])
        return Line(offset, match.start(_TEXT), match.end(), result, parts[1::2], location, key)

    def read_lines_again(self, block: Block) -> None:
        """Put the operations on the lines from here on, as far as there were such before, at the end of `block`."""
        begin = end = self.pos
        while (line := self.line_at(end)) is not None and (op := self.read_again(line)) is not None:
            append(block, op)
            end = line.end
        if end != begin:
            self.go_to(end)

    def read_again(self, line: Line) -> Operation | None:
        """The operation on a line, if one like it was remembered and the values that it names are of its types.

        Its results have been defined then.
        """
        operands = self._values(line.uses)
        if operands is None:
            return None
        made = self._made_of.get(line.key) or self._made_of.get(_key_on(line, operands))
        if made is None:
            return None
        op_class, operand_types, result_types, properties, attributes, regions, place, is_verified = made
        if [operand.type for operand in operands] != operand_types:
            return None
        if line.location is None:
            location = self.lines.attribute(line.start + place)
        elif (location := self.aliased_location(line.location)) is None:
            return None
        copies = [copy(region, location) for region in regions]
        op = make(op_class, operands, result_types, properties, attributes, copies, location)
        if not is_verified:
            self.to_verify.append(op)
        if line.result is not None:
            self.define(line.result, op.results, line.begin)
        return op

    def remember(self, line: Line, op: Operation) -> None:
        """Remember that the line was read as `op`, if that holds on other values too and there is no more to it."""
        if op.successors or not self.stands_at(line.end) or any("loc(" in part for part in line.key):
            return
        operands = [*op.operands]
        if self._values(line.uses) != operands:
            return
        place = self._place_in(line, op.location)
        if place is None or not all(_stands_alone(region, op.location) for region in op.regions):
            return
        self._made_of[_key_on(line, operands)] = _Made(
            type(op),
            [operand.type for operand in operands],
            [result.type for result in op.results],
            op.properties.copy(),
            op.attributes.copy(),
            [region.clone() for region in op.regions],
            place,
            is_valid_as_its_like(op),
        )

    def _place_in(self, line: Line, location: LocationAttr) -> int | None:
        """How far behind the line's start a location is, or 0 where the line ends with it; None for one elsewhere."""
        if line.location is not None:
            return 0 if location is self.attribute_aliases.get(line.location) else None
        start = self.lines.attribute(line.start)
        if not isinstance(location, FileLineColLoc) or location.line != start.line:
            return None
        return location.column.data - start.column.data

    def _values(self, uses: list[str]) -> list[SSAValue] | None:
        """The values that are called so, None where one is yet to be defined."""
        values: list[SSAValue] = []
        for name in uses:
            found = self.ssa_values.get(name) or self._one_of_several(name)
            if not found:
                return None
            values.append(found[0])
        return values

    def _one_of_several(self, name: str) -> Sequence[SSAValue]:
        """The result that is called so, as `31#1`; none where there is no such result yet."""
        name, _, number = name.partition("#")
        return self.ssa_values.get(name, ())[int(number) :] if number else ()


def _key_on(line: Line, values: Sequence[SSAValue]) -> tuple[str | int, ...]:
    """The key of a line that names these values, and, where some are the same, which."""
    numbers: dict[int, int] = {}
    places = [numbers.setdefault(id(value), len(numbers)) for value in values]
    return line.key if len(numbers) == len(values) else (*line.key, *places)


def _stands_alone(region: Region, location: LocationAttr) -> bool:
    """Whether a region uses no values from outside, and all in it stands where the operation does."""
    inside: set[SSAValue] = {value for block in region.blocks for value in block.args}
    for op in region.walk():
        inside.update(op.results)
        if op.regions or op.successors or op.location != location or not inside.issuperset(op.operands):
            return False
    return all(argument.location == location for block in region.blocks for argument in block.args)
