"""Splitting of a file at `// -----` lines."""

from sdy.passes.driver import Source

SEPARATOR = "// -----\n"


def split(source: Source) -> list[Source]:
    """Split `source` into parts, each named so that the line of a diagnostic can be located in the file."""
    parts: list[Source] = []
    start = 0
    lines = source.text.splitlines(keepends=True)
    for index, line in enumerate([*lines, SEPARATOR]):
        if line.strip() == SEPARATOR.strip() or index == len(lines):
            parts.append(Source("".join(lines[start:index]), f"within split at {source.name}:{start + 1} offset "))
            start = index + 1
    return parts
