"""What is in a device's memory over the order of a program, and at the moment when most is."""

from collections.abc import Sequence

from xdsl.ir import Operation, OpResult, SSAValue

from sdy.passes.account.causes import TracedProgram
from sdy.passes.account.report.listing import Listing
from sdy.passes.account.report.numbering import NONE, Json, Numbers
from sdy.passes.spmd.costs.footprint import Footprint
from sdy.passes.spmd.costs.sizes import value_bytes

_MOST_SHOWN = 1000
"""So many tensors are listed of those that are in memory at the peak; the others are added up."""


def memory_as_json(footprint: Footprint, traced: TracedProgram, listing: Listing, numbers: Numbers) -> Json:
    """The bytes at each moment, with the row of the whole program, and what is there at the peak."""
    moments = footprint.moments
    sources = [traced.sources.get(moment.operation) for moment in moments]
    held = sorted(footprint.at_peak, key=lambda value: -value_bytes(value))
    peak = footprint.peak
    return {
        "outside": footprint.outside_bytes,
        "bytes": [moment.bytes for moment in moments],
        "rows": [listing.row(source) for source in sources],
        "peak": NONE if peak is None else moments.index(peak),
        "held": [_held(value, traced, listing, numbers) for value in held[:_MOST_SHOWN]],
        "others": sum(map(value_bytes, held[_MOST_SHOWN:])),
    }


def _held(value: SSAValue, traced: TracedProgram, listing: Listing, numbers: Numbers) -> Sequence[int]:
    """A tensor of a device: the row and the tensor that it was made from, the operation, its type and its bytes."""
    assert isinstance(value, OpResult)
    source: Operation | None = traced.sources.get(value.op)
    whole = source.results[value.index] if source and value.index < len(source.results) else None
    return [
        listing.row(source),
        listing.value(whole),
        numbers.string(value.op.name),
        numbers.type(value.type),
        value_bytes(value),
    ]
