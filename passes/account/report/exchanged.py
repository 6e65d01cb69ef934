"""What devices receive: the collectives of a device's program, those alike as one, the most bytes first."""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation

from sdy.diagnostics import Location, location_of
from sdy.dialect.meshes import main_mesh
from sdy.interpreter.grid import Grid
from sdy.passes.account.causes import Cause, TracedProgram
from sdy.passes.account.report.listing import Listing
from sdy.passes.account.report.numbering import NONE, Json, Numbers
from sdy.passes.spmd.costs.communication import received
from sdy.passes.spmd.costs.hardware import Hardware
from sdy.passes.spmd.costs.step_time import AxisNames, axes_of, seconds_of_messages
from sdy.shown_text import shown

_TEXT = ".mlir"
"""Files in which each operation has a line of its own, so that layers do not share any."""


@dataclass
class Exchange:
    """A collective of a device's program, with all of its runs."""

    collective: Operation
    kind: str
    axes: AxisNames
    source: Operation | None
    """The operation of the whole program that it was made from."""
    cause: Cause | None
    times: int = 0
    bytes: float = 0
    seconds: float = 0

    @property
    def at(self) -> Operation | None:
        """The operation of the whole program that needs it, as far as that is known."""
        return self.cause.operation if self.cause else self.source

    @property
    def place(self) -> Location | None:
        """Where in the source that is."""
        return location_of(self.at) or location_of(self.collective)


def exchanges(traced: TracedProgram, hardware: Hardware | None) -> list[Exchange]:
    """The collectives of a program, with what they take on `hardware`, that which receives most first."""
    mesh = main_mesh(traced.local)
    grid = Grid(1, mesh.size)
    found: dict[Operation, Exchange] = {}
    for each in received(traced.local):
        op = each.collective
        if op not in found:
            kind = op.name.rpartition(".")[2].replace("_", "-")
            axes = axes_of(op, grid, mesh)
            found[op] = Exchange(op, kind, axes, traced.sources.get(op), traced.causes.get(op))
        exchange = found[op]
        exchange.times += each.times
        exchange.bytes += each.bytes
        if hardware and each.bytes:
            exchange.seconds += seconds_of_messages(exchange.axes, each.bytes, each.times, mesh, hardware)
    return sorted(found.values(), key=lambda exchange: -exchange.bytes)


def groups_alike(found: Sequence[Exchange], listing: Listing) -> list[list[Exchange]]:
    """The collectives that are the same but for the layer that they are in, that which receives most in all first."""
    groups: dict[Hashable, list[Exchange]] = defaultdict(list)
    for exchange in found:
        groups[_likeness(exchange, listing)].append(exchange)
    return sorted(groups.values(), key=lambda group: -sum(exchange.bytes for exchange in group))


def exchanges_as_json(groups: Sequence[Sequence[Exchange]], listing: Listing, numbers: Numbers) -> list[list[Json]]:
    """What the page tells of each collective, in their groups."""
    return [[_as_json(exchange, listing, numbers) for exchange in group] for group in groups]


def _likeness(exchange: Exchange, listing: Listing) -> Hashable:
    at = exchange.at
    place = exchange.place
    cause = exchange.cause
    lies = (cause.purpose, cause.before, cause.after) if cause else ()
    line = place if place and not place.filename.endswith(_TEXT) else None
    alike = None if line or at is None else listing.first_alike.get(at, at)
    return exchange.kind, exchange.axes, exchange.collective.results[0].type, lies, line, alike


def _as_json(exchange: Exchange, listing: Listing, numbers: Numbers) -> Json:
    cause = exchange.cause
    return {
        "kind": exchange.kind,
        "axes": shown(", ".join(exchange.axes)),
        "type": numbers.type(exchange.collective.results[0].type),
        "bytes": exchange.bytes,
        "times": exchange.times,
        "seconds": exchange.seconds,
        "place": numbers.place(exchange.place),
        "row": listing.row(exchange.at),
        "purpose": cause.purpose.value if cause else "exchange",
        "tensor": listing.value(cause.tensor) if cause else NONE,
        "before": numbers.layout(cause.before) if cause and cause.before != cause.after else NONE,
        "after": numbers.layout(cause.after) if cause and cause.before != cause.after else NONE,
    }
