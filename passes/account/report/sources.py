"""The text of the source around the places that a page refers to, where the files are at hand."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from sdy.diagnostics import Location
from sdy.shown_text import shown

_SUFFIXES = {".py", ".mlir"}
"""Files of other kinds are not read: a module can name any file, and a page is sent to others."""

_AROUND = 4
"""So many lines are shown before and after each that is referred to."""

_MOST_LINES = 5_000
"""So many lines are taken over into a page, those of the first places first."""

_LONGEST = 300
"""So many characters of a line are shown."""


def source_lines(places: Iterable[Location]) -> dict[str, dict[int, str]]:
    """The lines around each place, by the file as a person is shown it and by number."""
    wanted: dict[str, dict[int, None]] = defaultdict(dict)
    count = 0
    for place in places:
        lines = wanted[place.filename]
        before = len(lines)
        lines.update(dict.fromkeys(range(max(place.line - _AROUND, 1), place.line + _AROUND + 1)))
        count += len(lines) - before
        if count > _MOST_LINES:
            break
    return {shown(name): found for name, lines in wanted.items() if (found := _lines(name, lines))}


def _lines(filename: str, wanted: Iterable[int]) -> dict[int, str]:
    path = Path(filename)
    if path.suffix not in _SUFFIXES:
        return {}
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError):
        return {}
    return {number: shown(_shortened(lines[number - 1])) for number in sorted(wanted) if number <= len(lines)}


def _shortened(line: str) -> str:
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]} ..."
