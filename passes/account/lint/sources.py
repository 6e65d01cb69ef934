"""The lines of the files that findings are in, where they are at hand: Python and MLIR, nothing else is read."""

import re
from collections.abc import Sequence
from pathlib import Path

from sdy.diagnostics import Location, register_source
from sdy.passes.account.lint.options import check_names

_COMMENTS = {".py": "#", ".mlir": "//"}
"""How a comment begins in the files that are read, by the end of their names."""

_MOST_BYTES = 2**24
"""A longer file is not read."""


class Sources:
    """Files, each read once."""

    def __init__(self) -> None:
        self._lines: dict[str, Sequence[str]] = {}

    def lines(self, filename: str) -> Sequence[str]:
        """The lines of a file, which diagnostics show from then on; none where it cannot be read."""
        if filename not in self._lines:
            text = _text(filename)
            self._lines[filename] = text.split("\n")
            if text:
                register_source(filename, text)
        return self._lines[filename]

    def allowed(self, where: Location) -> set[str]:
        """The rules that a comment allows at a line: at its end, or on a line of its own above.

        Raises DiagnosticError where it names a rule that there is not.
        """
        begin = _COMMENTS.get(Path(where.filename).suffix)
        lines = self.lines(where.filename)
        if begin is None or not 0 < where.line <= len(lines):
            return set()
        above = lines[where.line - 2] if where.line > 1 else ""
        found = _names(begin, lines[where.line - 1], where)
        if above.lstrip().startswith(begin):
            found |= _names(begin, above, Location(where.filename, where.line - 1, 1))
        return found


def _names(begin: str, line: str, where: Location) -> set[str]:
    names = {
        name.strip()
        for match in re.finditer(rf"{re.escape(begin)}\s*sdy:\s*allow\(([^()]*)\)", line)
        for name in match[1].split(",")
    }
    check_names(names, where)
    return names


def _text(filename: str) -> str:
    path = Path(filename)
    try:
        if path.suffix in _COMMENTS and path.is_file() and path.stat().st_size <= _MOST_BYTES:
            return path.read_text("utf-8", "replace")
    except (OSError, ValueError):
        pass
    return ""
