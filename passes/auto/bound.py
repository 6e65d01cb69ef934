"""How fast a step could be at best: as if its operations were split over all devices, and nothing had to be sent."""

from math import prod

from sdy.ir.shapes import shape_of
from sdy.mesh import Mesh
from sdy.passes.auto.folded_program import FoldedOperation, FoldedProgram
from sdy.passes.spmd.costs.hardware import Hardware
from sdy.passes.spmd.costs.sizes import value_bytes
from sdy.passes.spmd.costs.work import seconds_of_work


def least_seconds(program: FoldedProgram, mesh: Mesh, hardware: Hardware) -> float:
    """The seconds that no layout can do without."""
    return sum(each.times * _least(each, mesh, hardware) for each in program.operations)


def _least(folded: FoldedOperation, mesh: Mesh, hardware: Hardware) -> float:
    op, work = folded.operation, folded.work
    values = zip((*op.operands, *op.results), (*work.reads, *work.writes), strict=True)
    # A device has at least one element of what it has a part of.
    traffic = sum(
        value_bytes(value) / min(mesh.size, max(prod(shape_of(value)), 1)) for value, is_touched in values if is_touched
    )
    return seconds_of_work(work.operations / mesh.size, work.element_type, traffic, hardware)
