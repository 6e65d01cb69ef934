"""A file of several inputs, separated by `// -----` lines."""

from sdy.passes.driver import Source

SEPARATOR = "// -----\n"


def split(source: Source) -> list[Source]:
    """The parts of `source`; each is named so that a diagnostic's line can be found in the whole file."""
    parts: list[Source] = []
    start = 0
    lines = source.text.splitlines(keepends=True)
    for index, line in enumerate([*lines, SEPARATOR]):
        if line.strip() == SEPARATOR.strip() or index == len(lines):
            parts.append(Source("".join(lines[start:index]), f"within split at {source.name}:{start + 1} offset "))
            start = index + 1
    return parts
