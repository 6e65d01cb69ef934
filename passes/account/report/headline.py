"""What a page says first: what is sent, most of it for what, and when most is in memory, in a sentence each."""

from collections import Counter
from collections.abc import Iterator, Sequence

from sdy.byte_sizes import shown_bytes
from sdy.diagnostics import Where, location_of
from sdy.passes.account.collectives import Collective
from sdy.passes.account.report.exchanges import Groups
from sdy.passes.account.summary import name_of_place
from sdy.passes.common.shown_seconds import shown_seconds
from sdy.passes.spmd.costs.footprint import Footprint
from sdy.shown_text import shown

_FEW = 3
"""So many kinds of collectives are named."""


def headline(groups: Groups, footprint: Footprint, seconds: tuple[float, float] | None = None) -> list[str]:
    """The sentences, in their order; one about time where the seconds are given that a device computes and waits."""
    return [*_sent(groups), _memory(footprint), *(_time(*seconds) if seconds else ())]


def _sent(groups: Groups) -> Iterator[str]:
    every = [collective for group in groups for collective in group]
    total = sum(each.bytes for each in every)
    if not total:
        yield "Devices exchange nothing."
        return
    kinds = Counter[str]()
    for each in every:
        kinds[each.kind] += each.times
    told = [f"{times:,} {kind}{'s' if times > 1 else ''}" for kind, times in kinds.most_common(_FEW)]
    others = len(kinds) - len(told)
    told += [f"{others} other kind{'s' if others > 1 else ''}"] if others else []
    yield f"In a step a device receives {shown_bytes(total)}, in {_list(told)}."
    largest = groups[0]
    share = sum(each.bytes for each in largest) / total
    first = largest[0]
    what = f"the {len(largest):,} {first.kind}s" if len(largest) > 1 else f"the {first.kind}"
    over = f" over {shown(', '.join(first.axes))}" if first.axes else ""
    yield f"{share:.0%} of that is {what}{over}{_of(first)}{_at(first.place)}."


def _memory(footprint: Footprint) -> str:
    peak = footprint.peak
    between = peak.bytes if peak else 0
    total, outside = footprint.outside_bytes + between, footprint.outside_bytes
    where = f", at {peak.operation.name}{_at(peak.operation)}" if peak and between else ""
    told = f"At its peak a device needs {shown_bytes(total)}{where}"
    return f"{told}; {shown_bytes(outside)} of that are arguments and results."


def _time(computing: float, waiting: float) -> Iterator[str]:
    told = f"A step is predicted to take {shown_seconds(computing + waiting)}"
    yield f"{told}, {shown_seconds(waiting)} of it for what devices exchange."


def _of(collective: Collective) -> str:
    """What a collective is for: the place as jax calls it, or the operation."""
    op = collective.source
    if op is None:
        return ""
    return f" of {shown(name_of_place(op))}"


def _at(where: Where) -> str:
    place = location_of(where)
    return f" ({shown(place.filename.rpartition('/')[2])}:{place.line})" if place else ""


def _list(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
