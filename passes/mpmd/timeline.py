"""Timelines of a step: in seconds, and as text."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from sdy.formatting import columns

WIDTH = 72
"""The default columns of a timeline as text."""


class TimelineSlice(NamedTuple):
    """The time in which a device computes, or a link carries a value."""

    label: str
    letter: str
    """The mark of the slice in the timeline as text."""
    start: float
    """Seconds since the start of the step."""
    seconds: float

    @property
    def end(self) -> float:
        return self.start + self.seconds


RowT = TypeVar("RowT")


@dataclass(frozen=True, slots=True)
class Timeline(Generic[RowT]):
    """Rows of slices: devices or links, which execute one slice at a time.

    Attributes:
        rows: The slices of each row in order.
    """

    rows: defaultdict[RowT, list[TimelineSlice]] = field(default_factory=lambda: defaultdict(list))

    def append(self, row: RowT, label: str, letter: str, ready: float, seconds: float) -> float:
        """Append a slice that starts when the row is free, but not before `ready`, and return its end."""
        slices = self.rows[row]
        slices.append(TimelineSlice(label, letter, max(ready, slices[-1].end) if slices else ready, seconds))
        return slices[-1].end

    @property
    def end(self) -> float:
        """The seconds until the last slice ends."""
        return max((slices[-1].end for slices in self.rows.values() if slices), default=0.0)

    @property
    def period(self) -> float:
        """The seconds between the starts of consecutive steps that no barrier separates."""
        return max((slices[-1].end - slices[0].start for slices in self.rows.values() if slices), default=0.0)

    @property
    def bubble(self) -> float:
        """The part of the period in which the busiest row waits."""
        return 1 - max(map(self.busy, self.rows)) / self.period if self.period else 0.0

    def busy(self, row: RowT) -> float:
        """Return the seconds of the slices of a row."""
        return sum(each.seconds for each in self.rows.get(row, ()))


def format_timeline(rows: Mapping[str, Sequence[TimelineSlice]], seconds: float, width: int = WIDTH) -> str:
    """Format rows as lines of `width` columns, each with the letter of the slice that is executed, or a space."""
    scale = width / seconds if seconds else 0.0
    lines: list[list[str]] = []
    for name, slices in rows.items():
        line = [" "] * width
        for each in slices:
            first = min(int(each.start * scale), width - 1)
            for column in range(first, max(first + 1, min(int(each.end * scale), width))):
                line[column] = each.letter
        lines.append([name, "|", "".join(line) + "|"])
    return "\n".join(columns(lines, gap=1))
