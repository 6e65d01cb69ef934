"""The statements of a block of a Python function: dead ones left out, with comments on their source lines."""

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace

from sdy.diagnostics import Location
from sdy.formatting import escape_line
from sdy.passes.python.expressions import WIDTH, Expression, assignment, statement
from sdy.passes.python.names import source_line

_LISTS = ("lax.top_k(", "lax.approx_max_k(", "lax.approx_min_k(")
"""Calls that return lists, which become tuples when a function returns them: the specs of results are tuples."""

_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")


@dataclass(frozen=True)
class Statement:
    """A statement: an assignment of a value to names, a return if there are none, or a function with its lines."""

    value: Expression
    targets: tuple[str, ...] = ()
    place: Location | None = None
    comments: tuple[str, ...] = ()
    function: tuple[str, ...] = ()

    @property
    def assigns(self) -> bool:
        """True if it assigns a value to names."""
        return bool(self.targets) and not self.function

    def is_all_of(self, text: str) -> bool:
        """Return whether `text`, an expression, is the value that is assigned."""
        return ", ".join(self.targets) == text and not self.value.text.startswith(_LISTS)

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts that may contain names."""
        return self.function or (self.value.text,)

    def lines(self, used: Set[str], depth: int) -> Iterator[str]:
        """Yield the lines of the statement; names of several that are not `used` become `_`."""
        if self.function:
            return iter(self.function)
        if not self.targets:
            return statement("return ", self.value, depth)
        targets = self.targets if len(self.targets) == 1 else [name if name in used else "_" for name in self.targets]
        return assignment(targets, self.value, depth)


class Statements:
    """The statements of a block, in order.

    Args:
        depth: The levels by which it is indented.
        around: The source line of the function that the block is in, which a comment already tells.
    """

    def __init__(self, depth: int, around: Location | None = None):
        self.depth = depth
        self._around = around
        self.place: Location | None = None
        """The source line of the statements to be added."""
        self._statements: list[Statement] = []
        self._comments: list[str] = []

    def add(self, value: Expression, targets: Sequence[str], function: Sequence[str] = ()) -> None:
        """Add the assignment of a value to targets, the return of a value, or the definition of a function."""
        comments, self._comments = self._comments, []
        last = self._statements[-1] if self._statements else None
        if last is not None and not targets and last.assigns and last.is_all_of(value.text):
            self._statements[-1] = replace(last, targets=())  # returns what it would assign
        else:
            self._statements.append(Statement(value, (*targets,), self.place, (*comments,), (*function,)))

    def comment(self, text: str) -> None:
        """Write a comment before the next statement."""
        self._comments.append(f"{self.indent}# {' '.join(text.split())}")

    def lines(self) -> list[str]:
        """Return the lines of the statements that are needed, with comments on the lines that they came from."""
        lines: list[str] = []
        place = self._around
        after_function = False
        for each, used in self._needed():
            if lines and (after_function or each.function):
                lines.append("")
            if each.place is not None and not is_same_line(each.place, place):
                place = each.place
                lines += self._place_comment(place)
            lines += [*each.comments, *each.lines(used, self.depth)]
            after_function = bool(each.function)
        return lines

    @property
    def indent(self) -> str:
        """The spaces before a statement."""
        return "    " * self.depth

    def _needed(self) -> list[tuple[Statement, Set[str]]]:
        """Return the statements without those whose names nothing uses, each with the names that later ones use."""
        needed: list[tuple[Statement, Set[str]]] = []
        used: set[str] = {"_"}
        for each in reversed(self._statements):
            if each.targets and used.isdisjoint(each.targets):
                continue
            needed.append((each, used.intersection(each.targets)))
            for text in each.texts:
                used.update(_NAME.findall(text))
        return needed[::-1]

    def _place_comment(self, place: Location) -> list[str]:
        text = source_line(place.filename, place.line)
        start = f"{self.indent}# {place.filename.rpartition('/')[2]}:{place.line}"
        whole = f"{start}: {escape_line(' '.join(text.split()))}"
        return [f"{whole[: WIDTH - 4]} ..." if len(whole) > WIDTH else whole] if text else []


def is_same_line(place: Location, other: Location | None) -> bool:
    """Return whether two locations are on one line."""
    return other is not None and (other.filename, other.line) == (place.filename, place.line)
