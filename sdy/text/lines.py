"""Lines and columns of offsets in a text."""

import re
from bisect import bisect_left

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr

from sdy.diagnostics import Location
from sdy.ir.building import unchecked


class _Numbers(dict[int, IntAttr]):
    """Interned integer attributes."""

    def __missing__(self, number: int) -> IntAttr:
        attribute = self[number] = object.__new__(IntAttr)
        # `unchecked` would create a `__dict__`; setting the single field takes a third of the memory.
        object.__setattr__(attribute, "data", number)
        return attribute


class LineTable:
    """Map from offsets in a text to lines and columns."""

    def __init__(self, text: str, filename: str):
        self._filename = filename
        self._filename_attr = StringAttr(filename)
        self._before_lines = [-1, *(match.start() for match in re.finditer("\n", text))]
        """The offset of the newline before each line."""
        self._numbers = _Numbers()

    @property
    def top(self) -> FileLineColLoc:
        """The location of the implicit module around top-level operations."""
        return FileLineColLoc(self._filename_attr, IntAttr(0), IntAttr(0))

    def place(self, offset: int) -> Location:
        """Return the line and column of an offset, for a diagnostic."""
        line, column = self._line_and_column(offset)
        return Location(self._filename, line, column)

    def attribute(self, offset: int) -> FileLineColLoc:
        """Return the line and column of an offset as an operation's location."""
        numbers = self._numbers
        line, column = self._line_and_column(offset)
        return unchecked(FileLineColLoc, filename=self._filename_attr, line=numbers[line], column=numbers[column])

    def _line_and_column(self, offset: int) -> tuple[int, int]:
        line = bisect_left(self._before_lines, offset)
        return line, offset - self._before_lines[line - 1]


def end_of_code(text: str, offset: int) -> int:
    """Return the end of the code before an offset, without trailing whitespace and comments.

    If no code precedes the offset, it is returned unchanged.
    """
    end = offset
    while True:
        while end and text[end - 1] in " \t":
            end -= 1
        if not end:
            return offset
        if text[end - 1] not in "\r\n":
            return end
        end -= 1
        comment = text.find("//", text.rfind("\n", 0, end) + 1, end)
        if comment != -1:
            end = comment
