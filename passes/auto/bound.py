"""How fast an operation could be at best: as if it were split over all devices, and nothing had to be sent."""

from math import prod

from sdy.ir.shapes import shape_of
from sdy.mesh import Mesh
from sdy.passes.auto.folded_program import FoldedOperation
from sdy.passes.spmd.costs.hardware import Hardware
from sdy.passes.spmd.costs.sizes import value_bytes
from sdy.passes.spmd.costs.work import seconds_of_work


def least_seconds(folded: FoldedOperation, mesh: Mesh, hardware: Hardware) -> float:
    """The seconds that equal operations take together with any layout."""
    op, work = folded.operation, folded.work
    values = zip((*op.operands, *op.results), (*work.reads, *work.writes), strict=True)
    # A device has at least one element of what it has a part of.
    traffic = sum(
        value_bytes(value) / min(mesh.size, max(prod(shape_of(value)), 1)) for value, is_touched in values if is_touched
    )
    return folded.times * seconds_of_work(work.operations / mesh.size, work.element_type, traffic, hardware)
