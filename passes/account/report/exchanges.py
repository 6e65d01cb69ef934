"""The report's tables of collectives: equal ones grouped, in decreasing order of bytes; and those under `jax.jit`."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING

from xdsl.ir import Operation

from sdy.formatting import escape_line, format_bytes
from sdy.passes.account.causes import Purpose
from sdy.passes.account.collectives import Collective
from sdy.passes.account.cost_tables import UNDER
from sdy.passes.account.lint.findings import Findings
from sdy.passes.account.report.badges import Arguments, badge_of
from sdy.passes.account.report.listing import Listing
from sdy.passes.account.report.numbering import NONE, Json, Numbers
from sdy.passes.spmd.costs.network import Network

if TYPE_CHECKING:
    from sdy.passes.account.account import Compiled

_TEXT = ".mlir"
"""Suffix of files in which each operation has its own line, so that a line does not identify a repeated layer."""

Groups = Sequence[Sequence[Collective]]
"""Groups of collectives that differ only in the layer that they are in."""


def group_equal(collectives: Iterable[Collective], listing: Listing) -> Groups:
    """Group collectives that differ only in their layer, in decreasing order of the bytes of each group."""
    groups: dict[Hashable, list[Collective]] = defaultdict(list)
    for collective in sorted(collectives, key=lambda collective: -collective.bytes):
        groups[_group_key(collective, listing)].append(collective)
    return sorted(groups.values(), key=lambda group: -sum(collective.bytes for collective in group))


def groups_as_json(
    groups: Groups,
    network: Network | None,
    arguments: Arguments,
    findings: Findings | None,
    listing: Listing,
    numbers: Numbers,
) -> list[list[Json]]:
    """Serialize groups of collectives, each with its badge, and with the costliest finding that explains it."""
    explained: dict[Operation, int] = {}
    for number, finding in enumerate(findings or ()):
        explained = dict.fromkeys(finding.collectives, number) | explained
    return [
        [
            {
                **_as_json(collective, listing, numbers),
                "badge": badge_of(collective, arguments),
                "finding": explained.get(collective.op, NONE),
                "seconds": network.seconds(collective.message) if network else 0.0,
            }
            for collective in group
        ]
        for group in groups
    ]


def under_as_json(under: "Compiled", received_by_sdy: float, needed_by_sdy: int, numbers: Numbers) -> Json:
    """Serialize the costs of a program as XLA partitions it, beside the bytes received and needed by sdy."""
    by_sdy = f"{format_bytes(received_by_sdy)} and {format_bytes(needed_by_sdy)} by sdy"
    memory = "unknown" if under.memory is None else format_bytes(under.memory)
    received = format_bytes(under.bytes_received)
    return {
        "summary": f"Under {UNDER}, each device receives {received} and needs {memory} of memory ({by_sdy}).",
        "collectives": [
            (each.collective, each.times, each.bytes, numbers.place(each.where), escape_line(str(each.where or "")))
            for each in under.received
        ],
    }


def _group_key(collective: Collective, listing: Listing) -> Hashable:
    source, place, cause = collective.source, collective.place, collective.cause
    purpose = (cause.purpose, cause.before, cause.after) if cause else ()
    line = place if place and not place.filename.endswith(_TEXT) else None
    representative = None if line or source is None else listing.first_alike.get(source, source)
    return collective.kind, collective.axes, collective.op.results[0].type, purpose, line, representative


def _as_json(collective: Collective, listing: Listing, numbers: Numbers) -> Json:
    cause = collective.cause
    moves = cause is not None and cause.before != cause.after
    return {
        "kind": collective.kind,
        "axes": escape_line(", ".join(collective.axes)),
        "type": numbers.type(collective.op.results[0].type),
        "bytes": collective.bytes,
        "times": collective.times,
        "place": numbers.place(collective.place),
        "row": listing.row(collective.source),
        "purpose": (cause.purpose if cause else Purpose.EXCHANGE).value,
        "tensor": listing.value(cause.tensor) if cause else NONE,
        "before": numbers.layout(cause.before) if cause and moves else NONE,
        "after": numbers.layout(cause.after) if cause and moves else NONE,
    }
