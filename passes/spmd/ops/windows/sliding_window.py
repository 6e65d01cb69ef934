"""Halos of sliding windows: the rows that each device needs of a dimension whose windows or kernel elements are split.

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

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sdy.passes.spmd.layout import Layout
from sdy.passes.spmd.reach import Reach
from sdy.stablehlo.checks.windows import WindowDimension, dilated, padding_pairs
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

    def part(self, operand: Layout, result: Layout) -> tuple[Reach, WindowDimension]:
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
            reach = Reach.steady(size, parts, low, step, length, total, dilation)
            return reach, replace(window, padding=(0, 0), base_dilation=1)
        rows, all_rows = (-(-(count - lead) // dilation) for count in (length, total))
        tail = length - lead - dilated(rows, dilation)
        reach = Reach.steady(size, parts, low // dilation, step // dilation, rows, all_rows)
        return reach, replace(window, padding=(lead, tail))


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
    reach = (window - 1) * dilation + 1
    return not any(padding) and base_dilation == 1 and reach <= stride and min(sizes) * stride == max(sizes)
