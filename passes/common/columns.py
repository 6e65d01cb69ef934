"""Rows of cells as lines of text, in columns as wide as they need."""

from collections.abc import Container, Sequence


def columns(rows: Sequence[Sequence[str]], numbers: Container[int] = (), gap: int = 2) -> list[str]:
    """A line for each row, indented, with `gap` spaces between columns; those of `numbers` end where they end."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [f"  {(gap * ' ').join(_padded(row, widths, numbers))}".rstrip() for row in rows]


def _padded(row: Sequence[str], widths: Sequence[int], numbers: Container[int]) -> list[str]:
    return [
        cell.rjust(width) if index in numbers else cell.ljust(width)
        for index, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
