"""Source files of findings, read for their lines and their `sdy: allow` comments: Python and MLIR only."""

import re
from collections.abc import Sequence
from pathlib import Path

from sdy.diagnostics import Location, register_source
from sdy.passes.account.lint.options import check_names

_COMMENTS = {".py": "#", ".mlir": "//"}
"""Comment markers by file suffix; files with other suffixes are not read."""

_MOST_BYTES = 2**24
"""Maximum size of a file that is read."""


class Sources:
    """Cache of source files."""

    def __init__(self) -> None:
        self._lines: dict[str, Sequence[str]] = {}

    def lines(self, filename: str) -> Sequence[str]:
        """Return the lines of a file, or none if it cannot be read, and register it as a source for diagnostics."""
        if filename not in self._lines:
            text = _text(filename)
            self._lines[filename] = text.split("\n")
            if text:
                register_source(filename, text)
        return self._lines[filename]

    def allowed(self, where: Location) -> set[str]:
        """Return the rules that a comment suppresses at a line: at its end, or on its own on the line above.

        Raises:
            DiagnosticError: The comment names an unknown rule.
        """
        marker = _COMMENTS.get(Path(where.filename).suffix)
        lines = self.lines(where.filename)
        if marker is None or not 0 < where.line <= len(lines):
            return set()
        above = lines[where.line - 2] if where.line > 1 else ""
        names = _names(marker, lines[where.line - 1], where)
        if above.lstrip().startswith(marker):
            names |= _names(marker, above, Location(where.filename, where.line - 1, 1))
        return names


def _names(marker: str, line: str, where: Location) -> set[str]:
    names = {
        name.strip()
        for match in re.finditer(rf"{re.escape(marker)}\s*sdy:\s*allow\(([^()]*)\)", line)
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
