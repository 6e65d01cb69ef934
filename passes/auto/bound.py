"""Lower bound of the step time: each operation partitioned over all devices, without communication."""

from math import prod

from sdy.ir.shapes import shape_of
from sdy.mesh import Mesh
from sdy.passes.auto.folded_program import FoldedOperation
from sdy.passes.spmd.costs.hardware import Hardware
from sdy.passes.spmd.costs.sizes import value_bytes


def least_seconds(folded: FoldedOperation, mesh: Mesh, hardware: Hardware) -> float:
    """Return a lower bound, over all layouts, of the total seconds of equal operations."""
    op = folded.operation
    # A shard has at least one element.
    least_bytes = [
        value_bytes(value) / min(mesh.size, max(prod(shape_of(value)), 1)) for value in (*op.operands, *op.results)
    ]
    return folded.times * folded.work.seconds(mesh.size, least_bytes, hardware)
