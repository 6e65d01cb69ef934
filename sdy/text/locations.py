"""Where in a file a position of its text is, as the location that operations and block arguments carry.

An operation's location is that of its name, a block argument's that of its own, unless `loc(...)` says otherwise.
`sdy.diagnostics.location_of` reads it back.
"""

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

    def place(self, offset: int) -> Location:
        """The line and column of an offset, for a diagnostic."""
        line, column = self._line_and_column(offset)
        return Location(self._filename, line, column)

    def attribute(self, offset: int) -> FileLineColLoc:
        """The line and column of an offset, for an operation to carry."""
        line, column = self._line_and_column(offset)
        return FileLineColLoc(self._filename_attr, IntAttr(line), IntAttr(column))

    def _line_and_column(self, offset: int) -> tuple[int, int]:
        line = bisect_left(self._newlines, offset)
        start = self._newlines[line - 1] + 1 if line else 0
        return line + 1, offset - start + 1
