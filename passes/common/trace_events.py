"""The Trace Event Format, which https://ui.perfetto.dev opens.

Each row of a timeline is a thread, and each slice of it a complete event:

    rows = {"computation": [TraceSlice("dot_general", 0.0, 1e-3, {"source": "step.py:12"})]}
    trace_events(rows, "step.py")
"""

import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple

_MICROSECONDS = 1e6
_PROCESS = 1


class TraceSlice(NamedTuple):
    """The time in which a row executes something."""

    name: str
    start: float
    """Seconds since the start of the trace."""
    seconds: float
    arguments: Mapping[str, str] = {}
    """Details of the slice, shown when it is selected."""


def trace_events(rows: Mapping[str, Iterable[TraceSlice]], process: str = "") -> str:
    """Return rows of slices as JSON in the Trace Event Format; `process` names them all."""
    events = [_name("process_name", {"name": process})] if process else []
    for thread, (name, slices) in enumerate(rows.items(), 1):
        events.append(_name("thread_name", {"name": name}, tid=thread))
        events += [_event(each, thread) for each in slices]
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ns"})


def _name(kind: str, arguments: Mapping[str, str], **fields: int) -> Mapping[str, object]:
    return {"ph": "M", "name": kind, "pid": _PROCESS, **fields, "args": arguments}


def _event(each: TraceSlice, thread: int) -> Mapping[str, object]:
    times = {"ts": each.start * _MICROSECONDS, "dur": each.seconds * _MICROSECONDS}
    return {"ph": "X", "name": each.name, "pid": _PROCESS, "tid": thread, **times, "args": each.arguments}
