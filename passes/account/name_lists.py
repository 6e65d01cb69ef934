"""Lists of names in messages: many names that differ in numbers are one, such as `params['layers'][0..11]['down']`."""

import re
from collections.abc import Iterable, Sequence
from math import prod

_MOST_NAMES = 3
"""Number of names that are listed in full."""

_MOST_PATTERNS = 6
"""Number of names with ranges that are listed."""

_NAMED = re.compile(r"argument \d+ \((.*)\)", re.DOTALL)
_NUMBER = re.compile(r"\d+")


def joined(names: Sequence[object]) -> str:
    """List names as `a, b and c`."""
    *others, last = map(str, names)
    return f"{', '.join(others)} and {last}" if others else last


def several(names: Sequence[str]) -> str:
    """List names; of many, the first two, and the others with ranges of numbers."""
    return joined(names if len(names) <= _MOST_NAMES else [*names[:2], *with_ranges(names[2:], "Finding.edits")])


def with_ranges(names: Iterable[str], attribute: str) -> list[str]:
    """Return names, such as `argument 3 (ws[1])`, as JAX's names with ranges, such as `ws[1..7]`; a few of many.

    Args:
        names: The names.
        attribute: The attribute that has all of them.
    """
    alike: dict[str, list[list[int]]] = {}
    for name in names:
        match = _NAMED.fullmatch(name)
        short = match[1] if match else name
        alike.setdefault(_NUMBER.sub("*", short), []).append([*map(int, _NUMBER.findall(short))])
    patterns = [_with_numbers(pattern, numbers) for pattern, numbers in alike.items()]
    return shortened(patterns, attribute)


def shortened(names: Iterable[str], attribute: str) -> list[str]:
    """Return the distinct names; of many, the first, and the number of the others with the attribute that has them."""
    distinct = [*dict.fromkeys(names)]
    left = len(distinct) - _MOST_PATTERNS
    return [*distinct[:_MOST_PATTERNS], f"{left:,} more in `{attribute}`"] if left > 1 else distinct


def _with_numbers(pattern: str, numbers: Sequence[Sequence[int]]) -> str:
    """Replace each `*` of a pattern by the range of its numbers, if every combination of them is a name."""
    columns = [sorted({*column}) for column in zip(*numbers, strict=True)]
    is_every = prod(map(len, columns)) == len(numbers)
    texts = iter([_range(column) if is_every or len(column) == 1 else "*" for column in columns])
    return re.sub(r"\*", lambda _: next(texts, "*"), pattern)


def _range(numbers: Sequence[int]) -> str:
    """Format ascending numbers as `0..3,7`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}..{run[-1]}" for run in runs)
