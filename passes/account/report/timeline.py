"""The timeline of a step: what computation and each link do, for the page and for Perfetto."""

from collections.abc import Iterator, Mapping, Sequence

from xdsl.ir import Attribute

from sdy.diagnostics import location_of
from sdy.formatting import escape_line
from sdy.passes.account.causes import TracedProgram
from sdy.passes.account.report.listing import Listing
from sdy.passes.account.report.numbering import NONE, Json, Numbers
from sdy.passes.account.summary import name_of_place
from sdy.passes.common.trace_events import TraceSlice, trace_events
from sdy.passes.spmd.costs.schedule import Row, Slice

Timeline = Mapping[Row, Sequence[Slice]]

_RESOLUTION = 2000
"""Slices shorter than this fraction of the step are merged with their neighbors on the page."""


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

    A slice has the name of its operation, and in its arguments the type, the source line, and JAX's name.
    """
    types: dict[Attribute, str] = {}
    """The texts of types: a program has few, and printing one takes long."""

    def slice_of(each: Slice) -> TraceSlice:
        op = each.operation
        name = op.name.rpartition(".")[2]
        source = traced.sources.get(op, op)
        place = location_of(source)
        arguments: dict[str, str] = {}
        for result in op.results[:1]:
            if result.type not in types:
                types[result.type] = str(result.type)
            arguments["type"] = types[result.type]
        arguments["operation"] = name_of_place(source)
        if place:
            arguments["source"] = f"{place.filename}:{place.line}"
        called = f"{name}: {each.iterations} more iterations" if each.iterations else name
        return TraceSlice(called, each.start, each.seconds, arguments)

    return trace_events({name: map(slice_of, slices) for name, slices in rows.items()}, title)
