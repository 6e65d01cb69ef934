"""The report's memory data: bytes live at each operation, and the tensors live at the peak."""

from collections.abc import Sequence

from xdsl.ir import Operation, OpResult, SSAValue

from sdy.passes.account.causes import TracedProgram
from sdy.passes.account.report.listing import Listing
from sdy.passes.account.report.numbering import NONE, Json, Numbers
from sdy.passes.common.properties import value_bytes
from sdy.passes.spmd.costs.footprint import Footprint

_MOST_SHOWN = 1000
"""Number of tensors live at the peak that are listed; the rest are summed."""


def memory_as_json(footprint: Footprint, traced: TracedProgram, listing: Listing, numbers: Numbers) -> Json:
    """Serialize the live bytes at each operation, and the tensors live at the peak."""
    moments = footprint.moments
    sources = [traced.sources.get(moment.operation) for moment in moments]
    live = sorted(footprint.at_peak, key=lambda value: -value_bytes(value))
    peak = footprint.peak
    return {
        "outside": footprint.outside_bytes,
        "bytes": [moment.bytes for moment in moments],
        "rows": [listing.row(source) for source in sources],
        "peak": NONE if peak is None else moments.index(peak),
        "held": [_live_tensor(value, traced, listing, numbers) for value in live[:_MOST_SHOWN]],
        "others": sum(map(value_bytes, live[_MOST_SHOWN:])),
    }


def _live_tensor(value: SSAValue, traced: TracedProgram, listing: Listing, numbers: Numbers) -> Sequence[int]:
    """Serialize a local tensor: its unpartitioned row and tensor, its operation, its type and its bytes."""
    source: Operation | None = None
    unpartitioned: SSAValue | None = None
    name = "copy of an argument"
    if isinstance(value, OpResult):
        source, name = traced.sources.get(value.op), value.op.name
        unpartitioned = source.results[value.index] if source and value.index < len(source.results) else None
    return [
        listing.row(source),
        listing.value(unpartitioned),
        numbers.string(name),
        numbers.type(value.type),
        value_bytes(value),
    ]
