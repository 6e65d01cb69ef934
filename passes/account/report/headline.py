"""The sentences at the top of a report: bytes received, the largest collective, peak memory and step time."""

from collections import Counter
from collections.abc import Iterator, Sequence

from sdy.diagnostics import Where, location_of
from sdy.formatting import escape_line, format_bytes, format_seconds
from sdy.passes.account.collectives import Collective
from sdy.passes.account.report.exchanges import Groups
from sdy.passes.account.summary import name_of_place
from sdy.passes.spmd.costs.footprint import Footprint
from sdy.passes.spmd.costs.step_time import StepCost

_FEW = 3
"""Number of kinds of collectives that are named."""


def headline(
    groups: Groups, footprint: Footprint, recomputed: str = "", row_loops: int = 0, cost: StepCost | None = None
) -> list[str]:
    """Summarize a program in sentences.

    Args:
        groups: The collectives, grouped and sorted by bytes received.
        footprint: The memory of a device over time.
        recomputed: A description of the recomputed values; empty without any.
        row_loops: The number of loops that each device ends with its own rows.
        cost: The predicted cost of a step, if hardware was given.
    """
    again = [f"Devices recompute {recomputed}."] if recomputed else []
    loops = f"{row_loops} loops" if row_loops > 1 else "a loop"
    alone = [f"Each device ends {loops} with its own rows, without an all-reduce per iteration."] if row_loops else []
    return [*_communication(groups), *alone, _memory(footprint), *again, *(_time(cost) if cost else ())]


def _communication(groups: Groups) -> Iterator[str]:
    every = [collective for group in groups for collective in group]
    total = sum(each.bytes for each in every)
    if not total:
        yield "Devices exchange no data."
        return
    kinds = Counter[str]()
    for each in every:
        kinds[each.kind] += each.times
    counts = [f"{times:,} {kind}{'s' if times > 1 else ''}" for kind, times in kinds.most_common(_FEW)]
    others = len(kinds) - len(counts)
    counts += [f"{others} other kind{'s' if others > 1 else ''}"] if others else []
    yield f"Each device receives {format_bytes(total)} per step, in {_list(counts)}."
    largest = groups[0]
    share = sum(each.bytes for each in largest) / total
    first = largest[0]
    what = f"the {len(largest):,} {first.kind}s" if len(largest) > 1 else f"the {first.kind}"
    over = f" over {escape_line(', '.join(first.axes))}" if first.axes else ""
    yield f"{share:.0%} of it is {what}{over}{_of(first)}{_at(first.place)}."


def _memory(footprint: Footprint) -> str:
    peak = footprint.peak
    between = peak.bytes if peak else 0
    total, outside = footprint.outside_bytes + between, footprint.outside_bytes
    where = f", at {peak.operation.name}{_at(peak.operation)}" if peak and between else ""
    peak_text = f"Peak memory per device is {format_bytes(total)}{where}"
    host = f" The host keeps {format_bytes(footprint.host_bytes)} for each device." if footprint.host_bytes else ""
    return f"{peak_text}; arguments and results take {format_bytes(outside)} of it.{host}"


def _time(cost: StepCost) -> Iterator[str]:
    communication = sum(cost.communication.values())
    hidden = f", {format_seconds(cost.overlap)} of it beside computation" if cost.overlap else ""
    step = f"A step is predicted to take {format_seconds(cost.seconds)}"
    yield f"{step}, including {format_seconds(communication)} of communication{hidden}."


def _of(collective: Collective) -> str:
    """Format the operation that requires a collective, by JAX's name of it if there is one."""
    op = collective.source
    if op is None:
        return ""
    return f" of {escape_line(name_of_place(op))}"


def _at(where: Where) -> str:
    place = location_of(where)
    return f" ({escape_line(place.filename.rpartition('/')[2])}:{place.line})" if place else ""


def _list(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
