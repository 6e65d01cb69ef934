"""Excerpts of the source files around the locations in a report."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from sdy.diagnostics import Location
from sdy.formatting import escape_line

_SUFFIXES = {".py", ".mlir"}
"""Suffixes of the files that are read. A module can name any file, and reports are shared, so others are not read."""

_AROUND = 4
"""Number of lines shown before and after a location."""

_MOST_LINES = 5_000
"""Maximum number of source lines in a report; lines of earlier locations come first."""

_LONGEST = 300
"""Maximum number of characters shown per line."""


def source_lines(places: Iterable[Location]) -> dict[str, dict[int, str]]:
    """Return the lines around each location, by file name (escaped for display) and line number."""
    wanted: dict[str, dict[int, None]] = defaultdict(dict)
    count = 0
    for place in places:
        lines = wanted[place.filename]
        before = len(lines)
        lines.update(dict.fromkeys(range(max(place.line - _AROUND, 1), place.line + _AROUND + 1)))
        count += len(lines) - before
        if count > _MOST_LINES:
            break
    return {escape_line(name): excerpt for name, lines in wanted.items() if (excerpt := _lines(name, lines))}


def _lines(filename: str, wanted: Iterable[int]) -> dict[int, str]:
    path = Path(filename)
    if path.suffix not in _SUFFIXES:
        return {}
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError):
        return {}
    return {number: escape_line(_shortened(lines[number - 1])) for number in sorted(wanted) if number <= len(lines)}


def _shortened(line: str) -> str:
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]} ..."
