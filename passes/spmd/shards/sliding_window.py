"""Halos of windows, pads and slices: the rows that each device needs of a dimension.

A sliding window is split along its windows, or along the elements of the kernel.

With 8 rows over 4 devices and a window of 3 with stride 1, each device computes some rows of the result:

    device    holds     of the result    needs
    0         0 1       0 1              0 1 2 3
    1         2 3       2 3              2 3 4 5

The gradient of a convolution's kernel is a convolution whose window is as large as the images, and whose result is as
large as the kernel. Then the elements of the window are split over devices. With 8 rows, padded by one at each end, a
window of 8 and a result of 3 rows:

    device    holds     of the window    needs
    0         0 1       0 1              . 0 1 2
    1         2 3       2 3              1 2 3 4

Each device computes a partial sum of all rows of the result.
"""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from sdy.ir.shapes import shape
from sdy.ir.walking import captured_values
from sdy.passes.spmd.shards.halo import Exchange, ReadRanges
from sdy.passes.spmd.shards.layout import Layout
from sdy.stablehlo.checks.windows import WindowDimension, dilated, padding_pairs
from sdy.stablehlo.convolution import ConvolutionOp
from sdy.stablehlo.padding import PadOp
from sdy.stablehlo.slicing import SliceOp
from sdy.stablehlo.windows import ReduceWindowOp, SelectAndScatterOp


@dataclass(frozen=True)
class SlidingWindow:
    """Window along one dimension of an operation.

    Attributes:
        window: The size, stride, padding and dilations of the window.
        before: The dimension of the operands that the window slides over.
        after: The dimension of the results.
        within: The dimension of the kernel that holds the elements of the window if it is split, else None.
    """

    window: WindowDimension
    before: int
    after: int
    within: int | None = None

    def part(self, operand: Layout, result: Layout) -> tuple[ReadRanges, WindowDimension]:
        """Return the rows that each shard needs of the operand, and the window that slides over those.

        The window keeps its base dilation if all shards begin at the same offset between two rows. Otherwise the
        exchanged rows include the holes of the dilation.
        """
        window, parts, places = self.window, operand.parts(self.before), result.shape[self.after]
        assert window.size is not None
        size, dilation, low = operand.shape[self.before], window.base_dilation, window.padding[0]
        of_part, elements = places, window.size
        if self.within is None:
            of_part = -(-places // parts)
            step = of_part * window.stride
        else:
            elements = -(-elements // parts)
            step = elements * window.window_dilation
        length, total = (
            (count - 1) * window.stride + dilated(width, window.window_dilation)
            for count, width in ((of_part, elements), (places, window.size))
        )
        lead = low % dilation
        if step % dilation or length <= lead:
            ranges = ReadRanges.steady(size, parts, low, step, length, total, dilation)
            return ranges, replace(window, padding=(0, 0), base_dilation=1)
        rows, all_rows = (-(-(count - lead) // dilation) for count in (length, total))
        tail = length - lead - dilated(rows, dilation)
        ranges = ReadRanges.steady(size, parts, low // dilation, step // dilation, rows, all_rows)
        return ranges, replace(window, padding=(lead, tail))


def sliding_windows(op: ConvolutionOp | ReduceWindowOp, layouts: Sequence[Layout]) -> list[SlidingWindow]:
    """Return the window along each dimension that windows slide over, given the layouts of all tensors of `op`."""
    if isinstance(op, ReduceWindowOp):
        return [SlidingWindow(window, dim, dim) for dim, window in enumerate(op.window())]
    numbers, kernel = op.dimension_numbers.data, layouts[1]
    spatial = numbers.input_spatial_dimensions, numbers.output_spatial_dimensions, numbers.kernel_spatial_dimensions
    return [
        SlidingWindow(window, before, after, within if kernel.axes[within] else None)
        for window, before, after, within in zip(op.window(op.padding), *spatial, strict=True)
    ]


def halo_exchanges(
    op: ConvolutionOp | ReduceWindowOp,
    layouts: Sequence[Layout],
    plan: Callable[[ReadRanges], Exchange],
    splits_windows: bool,
) -> dict[SlidingWindow, Exchange] | None:
    """Return the halo exchange along each dimension whose windows cover rows of several devices.

    Args:
        op: The operation.
        layouts: The layouts of its operands, then of its results.
        plan: Function that plans the exchange along one dimension.
        splits_windows: Whether the kernel of a convolution may be split like its input, and windows without halos need
            an exchange because the sharding rule does not allow their shardings; see `Planner`.

    Returns:
        The exchanges, or None if an exchange is impossible or does not pay.
    """
    operand, result = layouts[0], layouts[len(op.operands)]
    windows = sliding_windows(op, layouts)
    kernel_split = [sliding for sliding in windows if sliding.within is not None]
    moving = [sliding for sliding in windows if operand.axes[sliding.before] or result.axes[sliding.after]]
    if (
        any(layout.axes != operand.axes for layout in layouts[: num_windowed_operands(op)])
        or any(layout.axes != result.axes for layout in layouts[len(op.operands) :])
        or any(
            sliding.within is None and operand.axes[sliding.before] != result.axes[sliding.after] for sliding in moving
        )
        or (kernel_split and not (splits_windows and _splits_kernel_like_input(op, layouts, kernel_split)))
        or any(layout.mesh != operand.mesh for layout in layouts if layout.is_split)
        or 0 in (*operand.shape, *result.shape)
        or captured_values(op)
    ):
        return None
    leaves_parts = isinstance(op, ReduceWindowOp) or not splits_windows
    ranges_by_dim = {sliding: sliding.part(operand, result)[0] for sliding in moving}
    exchanges = {
        sliding: plan(ranges)
        for sliding, ranges in ranges_by_dim.items()
        if not (leaves_parts and ranges.is_identity)
        or sliding.before in operand.uneven_dims
        or sliding.after in result.uneven_dims
    }
    # A split kernel always pays: the alternative would gather the kernel as well.
    pays = all(exchange.pays or sliding.within is not None for sliding, exchange in exchanges.items())
    return exchanges if pays and not _shares_axes(op, layouts, exchanges) else None


def _splits_kernel_like_input(
    op: ConvolutionOp | ReduceWindowOp, layouts: Sequence[Layout], windows: Sequence[SlidingWindow]
) -> bool:
    """Return whether the kernel elements are split over the same axes as the input rows, in the same order."""
    assert isinstance(op, ConvolutionOp)
    lhs, kernel, result = layouts
    reverses = op.window_reversal is not None and any(op.window_reversal.get_values())
    return not reverses and all(
        sliding.within is not None
        and kernel.axes[sliding.within] == lhs.axes[sliding.before]
        and not result.axes[sliding.after]
        for sliding in windows
    )


def _shares_axes(
    op: ConvolutionOp | ReduceWindowOp, layouts: Sequence[Layout], windows: Collection[SlidingWindow]
) -> bool:
    """Return whether an axis of an exchange, or a sub-axis of it, also splits a dimension without exchange."""
    names = {axis.name for sliding in windows for axis in layouts[0].axes[sliding.before]}
    return any(
        dim not in windowed and any(axis.name in names for axis in axes)
        for layout, windowed in zip(layouts, windowed_dims(op, windows), strict=True)
        for dim, axes in enumerate(layout.axes)
    )


def windowed_dims(op: ConvolutionOp | ReduceWindowOp, windows: Collection[SlidingWindow]) -> list[set[int]]:
    """Return the dimensions of each operand, then of each result, that belong to `windows`."""
    before, after = {sliding.before for sliding in windows}, {sliding.after for sliding in windows}
    within = {sliding.within for sliding in windows if sliding.within is not None}
    count = num_windowed_operands(op)
    return [before] * count + [within] * (len(op.operands) - count) + [after] * len(op.results)


def num_windowed_operands(op: ConvolutionOp | ReduceWindowOp) -> int:
    """Return the number of operands that windows slide over; they come first."""
    return len(op.inputs) if isinstance(op, ReduceWindowOp) else 1


def local_windows(
    op: ConvolutionOp | ReduceWindowOp, layouts: Sequence[Layout], exchanges: Collection[SlidingWindow]
) -> list[WindowDimension]:
    """Return the windows that slide over the exchanged rows of one device."""
    operand, result = layouts[0], layouts[len(op.operands)]
    return [
        sliding.part(operand, result)[1] if sliding in exchanges else sliding.window
        for sliding in sliding_windows(op, layouts)
    ]


def windows_stay(op: ReduceWindowOp | SelectAndScatterOp, dim: int, sizes: Sequence[int]) -> bool:
    """Return whether no window along `dim` crosses a shard boundary.

    Windows must not overlap or be padded, and must fill shards of these local `sizes` of operand and result, as in

    maxima of windows of 2, stride 2     0 1 2 3 | 4 5 6 7   ->   1 3 | 5 7
    """
    window, stride, dilation, base_dilation = (
        values.get_values()[dim] if values is not None else 1
        for values in (
            op.window_dimensions,
            op.window_strides,
            op.window_dilations if isinstance(op, ReduceWindowOp) else None,
            op.base_dilations if isinstance(op, ReduceWindowOp) else None,
        )
    )
    padding = padding_pairs(op.padding)[dim] if op.padding else ()
    extent = (window - 1) * dilation + 1
    return not any(padding) and base_dilation == 1 and extent <= stride and min(sizes) * stride == max(sizes)


@dataclass(frozen=True)
class SlicedDim:
    """A result dimension: every `stride`-th position from `-low` on, where operand row r is at `r * dilation`."""

    low: int
    dilation: int = 1
    stride: int = 1

    def ranges(self, size: int, result_size: int, parts: int) -> ReadRanges:
        """Return the positions that each of `parts` result shards needs of the `size` rows of the operand."""
        shard = -(-result_size // parts)
        length, total = ((count - 1) * self.stride + 1 for count in (shard, result_size))
        return ReadRanges.steady(size, parts, self.low, shard * self.stride, length, total, self.dilation)


def sliced_dims(op: PadOp | SliceOp) -> list[SlicedDim]:
    """Return the index map of each result dimension of `op`."""
    if isinstance(op, SliceOp):
        return [SlicedDim(-start, stride=stride) for start, _, stride in op.ranges()]
    low, interior = op.edge_padding_low.get_values(), op.interior_padding.get_values()
    return [SlicedDim(before, between + 1) for before, between in zip(low, interior, strict=True)]


def slices_before_exchange(op: SliceOp, unsplit_dims: Collection[int]) -> bool:
    """Return whether the unsplit dimensions are sliced before the exchange along split ones, so that less is sent.

    Slices of one operand may share an exchange. They do not if all of them together send no more elements without:

        x[:32, 1:], x[32:, :-1]        each half of the rows is sent once
        x[1:-1, 1:], x[2:, 1:]         both need the same column, of all rows
    """
    slices = dict.fromkeys(use.operation for use in op.operand.uses if isinstance(use.operation, SliceOp))
    return _part(op, unsplit_dims) < 1 and sum(_part(each, unsplit_dims) for each in slices) <= 1


def _part(op: SliceOp, dims: Collection[int]) -> float:
    """Return the part of the elements that a slice along `dims` alone would keep."""
    before, after = shape(op.operand.type), shape(op.result.type)
    return math.prod(after[dim] / before[dim] for dim in dims if before[dim])
