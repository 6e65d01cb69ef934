"""The timeline of a step: what computation and each link do, for the page and for Perfetto."""

import json
from collections.abc import Iterator, Mapping, Sequence

from sdy.diagnostics import location_of
from sdy.formatting import escape_line
from sdy.passes.account.causes import TracedProgram
from sdy.passes.account.report.listing import Listing
from sdy.passes.account.report.numbering import NONE, Json, Numbers
from sdy.passes.account.summary import name_of_place
from sdy.passes.spmd.costs.schedule import Row, Slice

Timeline = Mapping[Row, Sequence[Slice]]

_RESOLUTION = 2000
"""Slices shorter than this fraction of the step are merged with their neighbors on the page."""

_MICROSECONDS = 1e6


def timeline_as_json(rows: Timeline, traced: TracedProgram, listing: Listing, numbers: Numbers) -> Json:
    """Serialize a timeline for the page.

    Returns:
        The seconds of the step, and for each row its name and slices: start, seconds, row of the listing, operation,
        number of operations, and number of iterations of a loop.
    """
    total = max([each.start + each.seconds for slices in rows.values() for each in slices], default=0.0)
    return {
        "seconds": total,
        "rows": [
            {
                "name": escape_line(name),
                "slices": [
                    (
                        run[0].start,
                        run[-1].start + run[-1].seconds - run[0].start,
                        listing.row(traced.sources.get(run[0].operation)) if len(run) == 1 else NONE,
                        numbers.string(run[0].operation.name),
                        len(run),
                        run[0].iterations,
                    )
                    for run in _merged(slices, total / _RESOLUTION)
                ],
            }
            for name, slices in rows.items()
        ],
    }


def _merged(slices: Sequence[Slice], shortest: float) -> Iterator[Sequence[Slice]]:
    """Yield runs of consecutive slices that are shorter than `shortest`, and each longer slice alone."""
    run: list[Slice] = []
    for each in slices:
        is_near = bool(run) and each.start + each.seconds - run[0].start < shortest
        if run and not is_near:
            yield run
            run = []
        run.append(each)
    if run:
        yield run


def perfetto_trace(title: str, rows: Timeline, traced: TracedProgram) -> str:
    """Return a timeline as JSON in the Trace Event Format, which https://ui.perfetto.dev opens.

    Each row is a thread. A slice has the name of its operation, and in its arguments the source line, and JAX's name.
    """
    names = [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": title}}]
    threads = [
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": thread, "args": {"name": name}}
        for thread, name in enumerate(rows, 1)
    ]
    events = [_event(each, thread, traced) for thread, slices in enumerate(rows.values(), 1) for each in slices]
    return json.dumps({"traceEvents": [*names, *threads, *events], "displayTimeUnit": "ns"})


def _event(each: Slice, thread: int, traced: TracedProgram) -> Json:
    op = each.operation
    source = traced.sources.get(op, op)
    place = location_of(source)
    name = op.name.rpartition(".")[2]
    arguments = {"type": str(op.results[0].type)} if op.results else {}
    return {
        "ph": "X",
        "name": f"{name}: {each.iterations} more iterations" if each.iterations else name,
        "pid": 1,
        "tid": thread,
        "ts": each.start * _MICROSECONDS,
        "dur": each.seconds * _MICROSECONDS,
        "args": {
            **arguments,
            "operation": name_of_place(source),
            **({"source": f"{place.filename}:{place.line}"} if place else {}),
        },
    }
