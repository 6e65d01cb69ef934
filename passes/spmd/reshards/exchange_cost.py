"""Communication cost of pads, slices and reshapes along split dimensions, in elements received."""

import math

from sdy.axes import total_size
from sdy.ir.shapes import shape
from sdy.mesh import Mesh
from sdy.passes.spmd.layout import Layout
from sdy.passes.spmd.reach import needed_rows
from sdy.passes.spmd.reshaped_layouts import ReshapedLayouts
from sdy.passes.spmd.reshards.cheapest_plan import cheapest_plan
from sdy.passes.spmd.reshards.collective_cost import elements_received
from sdy.passes.spmd.reshards.collective_steps import AxesPerDim
from sdy.passes.spmd.sliced_dims import sliced_dims
from sdy.stablehlo.padding import PadOp
from sdy.stablehlo.slicing import SliceOp


def elements_exchanged(op: PadOp | SliceOp, axes_per_dim: AxesPerDim, mesh: Mesh) -> int:
    """Return the number of elements that all devices receive in `op`, if operand and result are split alike.

    The partitioner exchanges rows along one dimension after the other, or gathers a dimension if that is cheaper.

    Args:
        op: A pad or a slice.
        axes_per_dim: The axes of each dimension, of both operand and result.
        mesh: The mesh of the axes.
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
        rows = exchange.received if exchange.pays else reach.shard * parts * (parts - 1)
        received += rows * math.prod(local) // local[dim] * mesh.size // parts
        local[dim] = reach.length
    return received


def elements_exchanged_in_reshape(before: Layout, after: Layout) -> int:
    """Return the number of elements that all devices receive in a reshape from `before` to `after`.

    If the partitioner cannot exchange elements, it gathers the operand along the dimensions whose shards differ.
    """
    if before.sharding is None or after.sharding is None or 0 in before.shape:
        return 0
    sides, mesh = ReshapedLayouts(before, after), before.mesh
    differing = [group for group in sides.groups if not sides.has_same_parts([group])]
    if not differing:
        return 0
    if sides.moving == differing and (exchanges := sides.exchanges(needed_rows)) is not None:
        local = math.prod(size // before.parts(dim) for dim, size in enumerate(before.padded_shape))
        received = 0
        for exchange in exchanges:
            received += exchange.received * local // exchange.reach.shard * mesh.size // exchange.reach.parts
            local = local // exchange.reach.shard * exchange.reach.length
        return received
    gathered = before.without_axes(sides.axes(differing))
    assert gathered.sharding is not None
    plan = cheapest_plan(before.sharding.dim_axes, gathered.sharding.dim_axes, before.shape, mesh)
    return elements_received(plan, before.sharding.dim_axes, before.shape, mesh)
