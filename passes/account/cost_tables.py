"""Tables of the collectives and the memory of programs, for the text of an account and of lint."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sdy.diagnostics import Location
from sdy.formatting import columns, escape_line
from sdy.passes.account.name_lists import with_ranges

_MOST_LINES = 10
"""Number of rows shown in the table of collectives; the rest are summed."""

UNDER = "jax.jit"
"""The other partitioner whose costs can be shown: XLA's."""

ALONE = f"by sdy, not by XLA as under {UNDER}"
BESIDE = f"by sdy, and beside it by XLA as under {UNDER}"
"""The program that the costs describe."""

DIFFERS = "  Compiled collectives differ from predicted ones where XLA merges, splits or moves them after partitioning."


@dataclass(frozen=True, slots=True)
class Received:
    """The collectives of one kind that stem from one source line.

    Attributes:
        collective: The kind, such as `all-gather`.
        where: The source line, or None if it is unknown.
        times: How often they run in a step.
        bytes: The bytes that a device receives in all of these runs, averaged over devices.
        arguments: JAX's names of the arguments that they reshard.
    """

    collective: str
    where: Location | None
    times: int
    bytes: float
    arguments: tuple[str, ...] = ()


def by_line(found: Iterable[Received]) -> tuple[Received, ...]:
    """Add up collectives by kind and line."""
    lines: dict[tuple[str, Location | None], list[Received]] = defaultdict(list)
    for each in found:
        lines[each.collective, each.where].append(each)
    totals = (
        Received(
            kind,
            where,
            sum(each.times for each in alike),
            sum(each.bytes for each in alike),
            tuple(dict.fromkeys(name for each in alike for name in each.arguments)),
        )
        for (kind, where), alike in lines.items()
    )
    return tuple(sorted(totals, key=lambda line: -line.bytes))


@dataclass(frozen=True, slots=True)
class CostColumn:
    """A column of the table of totals."""

    title: str
    received: Sequence[Received]
    memory: int | None
    host_memory: int = 0

    def cell(self, kind: str) -> str:
        """Format the bytes and the number of the collectives of a kind."""
        times, bytes_ = by_kind(self.received).get(kind, (0, 0))
        return f"{bytes_:,} in {times:,}" if times else "-"


def by_kind(received: Sequence[Received]) -> Mapping[str, tuple[int, int]]:
    """Return the number of runs and the bytes of each kind of collective."""
    kinds: dict[str, tuple[int, float]] = {}
    for each in received:
        times, bytes_ = kinds.get(each.collective, (0, 0.0))
        kinds[each.collective] = times + each.times, bytes_ + each.bytes
    return {kind: (times, round(bytes_)) for kind, (times, bytes_) in sorted(kinds.items())}


def received_table(received: Sequence[Received], title: str = "collective") -> str:
    """Format collectives by source line: the first lines, and the sum of the others with their places."""
    rows = [[title, "times", "bytes received", "at"]]
    rows += [
        [line.collective, f"{line.times:,}", f"{line.bytes:,.0f}", escape_line(_place(line))]
        for line in received[:_MOST_LINES]
    ]
    if others := received[_MOST_LINES:]:
        times, bytes_ = sum(line.times for line in others), sum(line.bytes for line in others)
        rows.append([f"{len(others)} others", f"{times:,}", f"{bytes_:,.0f}", escape_line(_places(others))])
    return _table(rows, numbers=2)


def _places(lines: Sequence[Received]) -> str:
    """Format the lines of the first rows, and the attribute that has all."""
    files: dict[str, list[str]] = defaultdict(list)
    for where in dict.fromkeys(line.where and line.where.short for line in lines):
        file, _, number = (where or _UNKNOWN).partition(":")
        files[file].append(number)
    (file, numbers), *other_files = files.items()
    is_all = len(numbers) <= _MOST_PLACES and not other_files
    text = f"{file}:{','.join(numbers[:_MOST_PLACES])}".rstrip(":")
    return text if is_all else f"{text},... (all in Account.received)"


_MOST_PLACES = 3
"""Number of lines that the row of the others lists."""

_UNKNOWN = "unknown location"


def _place(line: Received) -> str:
    """Format the place of a row, and the arguments that are resharded there."""
    arguments = f"  {', '.join(with_ranges(line.arguments, 'Account.received'))}" if line.arguments else ""
    return f"{line.where or _UNKNOWN}{arguments}"


def totals_table(shown: Sequence[CostColumn]) -> str:
    """Format the bytes received, in all and by kind of collective, and the memory, in a column for each program."""
    kinds = sorted({each.collective for column in shown for each in column.received})
    rows = [
        ["bytes per device", *(column.title for column in shown)],
        ["received", *(f"{sum(each.bytes for each in column.received):,.0f}" for column in shown)],
        *([f"  {kind}", *(column.cell(kind) for column in shown)] for kind in kinds),
        ["memory", *(f"{column.memory:,}" if column.memory else "-" for column in shown)],
    ]
    if any(column.host_memory for column in shown):
        rows.append(["on the host", *(f"{column.host_memory:,}" if column.host_memory else "-" for column in shown)])
    return _table(rows, numbers=len(shown))


def _table(rows: Sequence[Sequence[str]], numbers: int) -> str:
    """Align rows in columns, with a rule below the first row; `numbers` columns after the first are right-aligned."""
    lines = columns(rows, numbers=range(1, numbers + 1), gap=3)
    lines.insert(1, " " + "─" * max(map(len, lines)))
    return "\n".join(lines)
