"""What a device needs of a dimension that windows slide over, where their places or their elements are split.

For 8 rows over 4 devices and a window of 3 that slides by one, each device has some of the places of the result:

    device    has       of the result    needs
    0         0 1       0 1              0 1 2 3
    1         2 3       2 3              2 3 4 5

The gradient of a convolution's kernel is a convolution whose window is as large as the images, and which has as many
places as the kernel has elements. There each device has some of the elements of the window. For 8 rows, padded by one
at each end, a window of 8 and 3 places:

    device    has       of the window    needs
    0         0 1       0 1              . 0 1 2
    1         2 3       2 3              1 2 3 4

and has then, of each place, what its elements of the window contribute.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sdy.passes.spmd.layout import Layout
from sdy.passes.spmd.reach import Reach
from sdy.stablehlo.checks.windows import WindowDimension, dilated, padding_pairs
from sdy.stablehlo.reduce_window import ReduceWindowOp
from sdy.stablehlo.select_and_scatter import SelectAndScatterOp


@dataclass(frozen=True)
class SlidingWindow:
    """A window along dimension `before` of the operands that windows slide over, and dimension `after` of results.

    `within` is the dimension of a kernel that has the elements of the window, where these are split.
    """

    window: WindowDimension
    before: int
    after: int
    within: int | None = None

    def part(self, operand: Layout, result: Layout) -> tuple[Reach, WindowDimension]:
        """What each part needs of the operand, and the window that slides over that.

        Holes between the rows stay those of the window where all parts begin alike between two rows.
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
    """Whether windows along `dim` do not overlap, and each part, of these `sizes`, has as many as fit into it.

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
