"""Formatting of text for people: columns, byte counts and times, with escaping of text from files for terminals.

Names in a module may contain anything: escape sequences that a terminal obeys, or marks that reverse the following
text. `escape_line` escapes a single line, such as a name; `escape_lines` escapes text of several lines. The units of
bytes K, M, G and T are powers of 1,024.
"""

import re
from collections.abc import Container, Sequence


def escape_line(text: str) -> str:
    r"""Return `text` with each unprintable character except tabs escaped as in Python, `\x1b` or `\u202e`."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\t" else c.encode("unicode_escape").decode() for c in text)


def escape_lines(text: str) -> str:
    """Return `text` with each of its lines escaped by `escape_line`."""
    return "\n".join(map(escape_line, text.split("\n")))


_BYTE_UNITS = ("", "K", "M", "G", "T")
_NEEDS_FOUR_DIGITS = 999.5
"""From this value on, three significant digits would print as 1e+03: a unit is 1,024 of the next smaller one."""


def parse_bytes(size: str | float) -> int:
    """Return a byte count, a number or a text such as `80G`, `80GiB`, `1.5T` or `4096`.

    Raises:
        ValueError: `size` is not a byte count.
    """
    text = size if isinstance(size, str) else f"{size:.0f}"
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    bytes_ = int(float(match[1]) * 2 ** (10 * _BYTE_UNITS.index(match[2].upper()))) if match else 0
    if not bytes_:
        raise ValueError(f"'{text}' is not a size: bytes, or a number with K, M, G or T")
    return bytes_


def format_bytes(size: float) -> str:
    """Format `size` in the largest fitting unit: `5.92 GiB`."""
    power = max(min((int(size).bit_length() - 1) // 10, len(_BYTE_UNITS) - 1), 0)
    if power:
        number = size / 2 ** (10 * power)
        return (
            f"{number:.3g} {_BYTE_UNITS[power]}iB"
            if number < _NEEDS_FOUR_DIGITS
            else f"{number:,.0f} {_BYTE_UNITS[power]}iB"
        )
    return f"{size:.0f} byte{'' if round(size) == 1 else 's'}"


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


_TIME_UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))


def format_seconds(value: float) -> str:
    """Format a time in seconds with a suitable unit: `1.25 ms`."""
    if not value:
        return "0"
    unit, size = next((each for each in _TIME_UNITS if value >= each[1]), _TIME_UNITS[-1])
    return f"{value / size:.3g} {unit}"
