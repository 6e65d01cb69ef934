"""Lines and columns: where in its file an offset of a text stands."""

import re
from bisect import bisect_left

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr

from sdy.diagnostics import Location


class LineTable:
    """Turns offsets in a text into lines and columns."""

    def __init__(self, text: str, filename: str):
        self._filename = filename
        self._filename_attr = StringAttr(filename)
        self._newlines = [match.start() for match in re.finditer("\n", text)]
        self._numbers: dict[int, IntAttr] = {}

    @property
    def whole(self) -> FileLineColLoc:
        """The text as a whole, for the module around operations that stand in none."""
        return FileLineColLoc(self._filename_attr, IntAttr(0), IntAttr(0))

    def place(self, offset: int) -> Location:
        """The line and column of an offset, for a diagnostic."""
        line, column = self._line_and_column(offset)
        return Location(self._filename, line, column)

    def attribute(self, offset: int) -> FileLineColLoc:
        """The line and column of an offset, for an operation to carry."""
        line, column = self._line_and_column(offset)
        # Every operation has a location. It and its numbers are made without xDSL's check of what they are made of.
        location = FileLineColLoc.__new__(FileLineColLoc)
        vars(location).update(filename=self._filename_attr, line=self._number(line), column=self._number(column))
        return location

    def _number(self, number: int) -> IntAttr:
        known = self._numbers.get(number)
        if known is None:
            known = self._numbers[number] = IntAttr.__new__(IntAttr)
            vars(known)["data"] = number
        return known

    def _line_and_column(self, offset: int) -> tuple[int, int]:
        line = bisect_left(self._newlines, offset)
        start = self._newlines[line - 1] + 1 if line else 0
        return line + 1, offset - start + 1


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
