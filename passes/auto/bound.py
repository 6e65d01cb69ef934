"""How fast an operation could be at best: as if it were split over all devices, and nothing had to be sent."""

from math import prod

from sdy.ir.shapes import shape_of
from sdy.mesh import Mesh
from sdy.passes.auto.folded_program import FoldedOperation
from sdy.passes.spmd.costs.hardware import Hardware
from sdy.passes.spmd.costs.sizes import value_bytes


def least_seconds(folded: FoldedOperation, mesh: Mesh, hardware: Hardware) -> float:
    """The seconds that equal operations take together with any layout."""
    op = folded.operation
    # A device has at least one element of what it has a part of.
    least_bytes = [
        value_bytes(value) / min(mesh.size, max(prod(shape_of(value)), 1)) for value in (*op.operands, *op.results)
    ]
    return folded.times * folded.work.seconds(mesh.size, least_bytes, hardware)
