"""Communication cost of pads, slices, windows and reshapes along split dimensions, in elements received."""

import math
from collections.abc import Collection, Sequence

from sdy.axes import total_size
from sdy.ir.shapes import shape
from sdy.mesh import Mesh
from sdy.passes.spmd.plan.reshard_cost import before_reshards, is_on_all_devices
from sdy.passes.spmd.reshard.cheapest_plan import cheapest_plan
from sdy.passes.spmd.reshard.collective_cost import elements_received
from sdy.passes.spmd.reshard.collective_steps import AxesPerDim
from sdy.passes.spmd.shards.halo import needed_rows
from sdy.passes.spmd.shards.layout import Layout
from sdy.passes.spmd.shards.reshaped_layouts import ReshapedLayouts
from sdy.passes.spmd.shards.sliding_window import (
    halo_exchanges,
    num_windowed_operands,
    sliced_dims,
    slices_before_exchange,
    sliding_windows,
    windowed_dims,
)
from sdy.stablehlo.convolution import ConvolutionOp
from sdy.stablehlo.padding import PadOp
from sdy.stablehlo.slicing import SliceOp
from sdy.stablehlo.windows import ReduceWindowOp

EXCHANGING = (SliceOp, PadOp, ConvolutionOp, ReduceWindowOp)
"""Operations along whose permutation factors devices exchange rows."""


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
    unsplit = [dim for dim, parts in enumerate(parts_of_dims) if parts == 1]
    is_sliced = isinstance(op, SliceOp) and slices_before_exchange(op, unsplit)
    sizes = [after[dim] if is_sliced and dim in unsplit else size for dim, size in enumerate(before)]
    local = [-(-size // parts) for size, parts in zip(sizes, parts_of_dims, strict=True)]
    received = 0
    for dim, (sliced, parts) in enumerate(zip(sliced_dims(op), parts_of_dims, strict=True)):
        ranges = sliced.ranges(before[dim], after[dim], parts)
        if parts == 1 or ranges.is_identity:
            continue
        exchange = needed_rows(ranges)
        rows = exchange.received if exchange.pays else ranges.shard * parts * (parts - 1)
        received += rows * math.prod(local) // local[dim] * mesh.size // parts
        local[dim] = ranges.length
    return received


def elements_exchanged_in_windows(op: ConvolutionOp | ReduceWindowOp, layouts: Sequence[Layout]) -> int:
    """Return the number of elements that all devices receive of the operands of `op`, for halos of its windows.

    If the partitioner cannot exchange halos, it gathers each operand along its windowed dimensions. Devices receive
    nothing of an operand that all of them hold.

    Args:
        op: A convolution or a window reduction.
        layouts: The layouts of its operands, then of its results, in which it runs.
    """
    mesh = next((layout.mesh for layout in layouts if layout.is_split), None)
    if mesh is None or any(min(layout.shape, default=1) < 1 for layout in layouts):
        return 0
    if all(is_on_all_devices(before_reshards(value)) for value in op.operands[: num_windowed_operands(op)]):
        return 0
    windows = sliding_windows(op, layouts)
    exchanges = halo_exchanges(op, layouts, needed_rows, splits_windows=True)
    if exchanges is None:
        dims = windowed_dims(op, windows)[: len(op.operands)]
        return sum(_elements_gathered(layout, of_layout) for layout, of_layout in zip(layouts, dims, strict=False))
    operand, received = layouts[0], 0
    local = [size // operand.parts(dim) for dim, size in enumerate(operand.padded_shape)]
    for sliding, exchange in exchanges.items():
        rest = math.prod(local) // local[sliding.before]
        received += exchange.received * rest * mesh.size // exchange.ranges.parts
        local[sliding.before] = exchange.ranges.length
    return received * num_windowed_operands(op)


def _elements_gathered(layout: Layout, dims: Collection[int]) -> int:
    """Return the number of elements that all devices receive in a gather along `dims`."""
    gathered = layout.without(dims)
    if layout.sharding is None or gathered.sharding is None:
        return 0
    before = layout.sharding.dim_axes
    plan = cheapest_plan(before, gathered.sharding.dim_axes, layout.shape, layout.mesh)
    return elements_received(plan, before, layout.shape, layout.mesh)


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
            received += exchange.received * local // exchange.ranges.shard * mesh.size // exchange.ranges.parts
            local = local // exchange.ranges.shard * exchange.ranges.length
        return received
    gathered = before.without_axes(sides.axes(differing))
    assert gathered.sharding is not None
    plan = cheapest_plan(before.sharding.dim_axes, gathered.sharding.dim_axes, before.shape, mesh)
    return elements_received(plan, before.sharding.dim_axes, before.shape, mesh)
