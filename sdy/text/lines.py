"""Lines and columns: where in its file an offset of a text stands."""

import re
from bisect import bisect_left

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr

from sdy.diagnostics import Location
from sdy.ir.unchecked import unchecked


class _Numbers(dict[int, IntAttr]):
    """The attribute of each number that was asked for."""

    def __missing__(self, number: int) -> IntAttr:
        made = self[number] = object.__new__(IntAttr)
        # Set by itself, it needs a third of the memory of `unchecked`, as no dictionary is made for it.
        object.__setattr__(made, "data", number)
        return made


class LineTable:
    """Turns offsets in a text into lines and columns."""

    def __init__(self, text: str, filename: str):
        self._filename = filename
        self._filename_attr = StringAttr(filename)
        self._before_lines = [-1, *(match.start() for match in re.finditer("\n", text))]
        """The offset before each line."""
        self._numbers = _Numbers()

    @property
    def whole(self) -> FileLineColLoc:
        """The text as a whole, for the module around operations that stand in none."""
        return FileLineColLoc(self._filename_attr, IntAttr(0), IntAttr(0))

    def place(self, offset: int) -> Location:
        """The line and column of an offset, for a diagnostic."""
        line, column = self._line_and_column(offset)
        return Location(self._filename, line, column)

    def attribute(self, offset: int) -> FileLineColLoc:
        """The line and column of an offset, for an operation to carry: each has one, so that this is made fast."""
        numbers = self._numbers
        line, column = self._line_and_column(offset)
        return unchecked(FileLineColLoc, filename=self._filename_attr, line=numbers[line], column=numbers[column])

    def _line_and_column(self, offset: int) -> tuple[int, int]:
        line = bisect_left(self._before_lines, offset)
        return line, offset - self._before_lines[line - 1]


def end_of_code(text: str, offset: int) -> int:
    """Where the code before an offset ends, without the spaces, line ends and comments after it.

    The offset itself where there is no code before it.
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
