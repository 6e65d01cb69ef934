"""Bytes that devices receive in the exchange of a pad or a slice along split dimensions."""

import math

from sdy.axes import total_size
from sdy.ir.shapes import shape
from sdy.mesh import Mesh
from sdy.passes.spmd.reach import needed_rows
from sdy.passes.spmd.reshards.collective_steps import AxesPerDim
from sdy.passes.spmd.sliced_dims import sliced_dims
from sdy.stablehlo.padding import PadOp
from sdy.stablehlo.slicing import SliceOp


def elements_exchanged(op: PadOp | SliceOp, axes_per_dim: AxesPerDim, mesh: Mesh) -> int:
    """Return the elements that all devices receive in `op`, whose operand and result are split over `axes_per_dim`.

    The partitioner exchanges rows along one dimension after the other; where an exchange does not pay, it gathers them.
    """
    before, after = shape(op.operand.type), shape(op.result.type)
    if min((*before, *after), default=0) < 1:
        return 0
    parts_of_dims = [total_size(axes, mesh) for axes in axes_per_dim]
    local = [-(-size // parts) for size, parts in zip(before, parts_of_dims, strict=True)]
    received = 0
    for dim, (sliced, parts) in enumerate(zip(sliced_dims(op), parts_of_dims, strict=True)):
        reach = sliced.reach(before[dim], after[dim], parts)
        if parts == 1 or reach.is_identity:
            continue
        exchange = needed_rows(reach)
        if exchange.pays:
            rows = sum(piece.size * len(piece.senders) for piece in exchange.pieces if not piece.is_own)
        else:
            rows = reach.shard * parts * (parts - 1)
        received += rows * math.prod(local) // local[dim] * mesh.size // parts
        local[dim] = reach.length
    return received
