"""Formatting of times."""

_UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))


def format_seconds(value: float) -> str:
    """Format a time in seconds with a suitable unit: `1.25 ms`."""
    if not value:
        return "0"
    unit, size = next((each for each in _UNITS if value >= each[1]), _UNITS[-1])
    return f"{value / size:.3g} {unit}"
