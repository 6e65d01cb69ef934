"""Parsing and formatting of byte counts; the units K, M, G and T are powers of 1,024."""

import re

_UNITS = ("", "K", "M", "G", "T")
_NEEDS_FOUR_DIGITS = 999.5
"""From this value on, three significant digits would print as 1e+03: a unit is 1,024 of the next smaller one."""


def parse_bytes(text: str) -> int:
    """Parse a byte count such as `80G`, `80GiB`, `1.5T` or `4096`.

    Raises:
        ValueError: `text` is not a byte count.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    size = int(float(match[1]) * 2 ** (10 * _UNITS.index(match[2].upper()))) if match else 0
    if not size:
        raise ValueError(f"'{text}' is not a size: bytes, or a number with K, M, G or T")
    return size


def format_bytes(size: float) -> str:
    """Format `size` in the largest fitting unit: `5.92 GiB`."""
    power = max(min((int(size).bit_length() - 1) // 10, len(_UNITS) - 1), 0)
    if power:
        number = size / 2 ** (10 * power)
        return f"{number:.3g} {_UNITS[power]}iB" if number < _NEEDS_FOUR_DIGITS else f"{number:,.0f} {_UNITS[power]}iB"
    return f"{size:.0f} byte{'' if round(size) == 1 else 's'}"
