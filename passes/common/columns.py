"""Text tables."""

from collections.abc import Container, Sequence


def columns(rows: Sequence[Sequence[str]], numbers: Container[int] = (), gap: int = 2) -> list[str]:
    """Format rows as indented lines with aligned columns.

    Args:
        rows: The cells of each row.
        numbers: The indices of right-aligned columns.
        gap: The number of spaces between columns.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [f"  {(gap * ' ').join(_padded(row, widths, numbers))}".rstrip() for row in rows]


def _padded(row: Sequence[str], widths: Sequence[int], numbers: Container[int]) -> list[str]:
    return [
        cell.rjust(width) if index in numbers else cell.ljust(width)
        for index, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
