"""Timelines of a step: as text, and in the Trace Event Format, which https://ui.perfetto.dev opens."""

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sdy.formatting import columns

_MICROSECONDS = 1e6
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


Timeline = Mapping[str, Sequence[TimelineSlice]]
"""The slices of each device and link by its name, in order."""


def format_timeline(rows: Timeline, seconds: float, width: int = WIDTH) -> str:
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


def perfetto_trace(rows: Timeline) -> str:
    """Return rows in the Trace Event Format, each as a thread."""
    threads = [
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": thread, "args": {"name": name}}
        for thread, name in enumerate(rows, 1)
    ]
    events = [
        {
            "ph": "X",
            "name": each.label,
            "pid": 1,
            "tid": thread,
            "ts": each.start * _MICROSECONDS,
            "dur": each.seconds * _MICROSECONDS,
        }
        for thread, slices in enumerate(rows.values(), 1)
        for each in slices
    ]
    return json.dumps({"traceEvents": [*threads, *events], "displayTimeUnit": "ns"})
