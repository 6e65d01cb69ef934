"""Sliding windows of reductions, convolutions and select-and-scatter.

Along a dimension of size 5 with padding (1, 1), a window of size 2 dilated by 2 and moved with stride 2:

    padded     . 0 1 2 3 4 .
    windows    x - x              3 positions, so the result has size 3 along that dimension
                   x - x
                       x - x
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseIntOrFPElementsAttr, TensorType, i64
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from sdy.stablehlo.attributes.operation_attributes import I64Array
from sdy.stablehlo.types.sizes import MAX_DIMENSIONS, bounded_type, bounds_of


@dataclass(frozen=True, slots=True)
class WindowDimension:
    """The window along one dimension. A size of None is dynamic; negative padding, (low, high), crops."""

    size: int | None
    stride: int = 1
    padding: tuple[int, int] = (0, 0)
    base_dilation: int = 1
    window_dilation: int = 1

    def places(self, size: int | None) -> int | None:
        """Return the number of window positions along a dimension; None is dynamic."""
        if size is None or self.size is None:
            return None
        padded = sum(self.padding) + dilated(size, self.base_dilation)
        window = dilated(self.size, self.window_dilation)
        return 0 if padded == 0 or window > padded else (padded - window) // self.stride + 1


def dilated(size: int, dilation: int) -> int:
    """Return the extent of `size` elements with `dilation - 1` holes between each two."""
    return 0 if size == 0 else (size - 1) * dilation + 1


def windowed_type(
    type_: TensorType[Attribute], window: Sequence[WindowDimension], element_type: Attribute
) -> TensorType[Attribute]:
    """Return the type of a tensor with one element per window position, including bounds."""
    counts = [
        dimension.places(None if size == DYNAMIC_INDEX else size)
        for dimension, size in zip(window, type_.get_shape(), strict=True)
    ]
    bounds = bounds_of(type_) and [
        dimension.places(bound) for dimension, bound in zip(window, bounds_of(type_), strict=True)
    ]
    return bounded_type(element_type, [DYNAMIC_INDEX if count is None else count for count in counts], bounds)


def window_dimensions(
    sizes: Sequence[int | None],
    strides: I64Array | None = None,
    padding: Sequence[tuple[int, int]] = (),
    base_dilations: I64Array | None = None,
    window_dilations: I64Array | None = None,
    reversal_count: int = 0,
) -> list[WindowDimension]:
    """Return the window described by an operation's attributes, which are absent or have one entry per dimension.

    Args:
        sizes: The window's size in each dimension, None if dynamic.
        strides: The strides, 1 by default.
        padding: Pairs of low and high padding, 0 by default.
        base_dilations: The dilations of the input, 1 by default.
        window_dilations: The dilations of the window, 1 by default.
        reversal_count: The number of entries of the window's reversal.

    Raises:
        VerifyException: If an attribute has another number of entries, or a size, stride or dilation is not positive.
    """
    entries = {
        "window-strides": _values(strides),
        "base-dilation factors": _values(base_dilations),
        "window-dilation factors": _values(window_dilations),
        "padding-entries": padding,
        "window-reversal": range(reversal_count),
    }
    for name, values in entries.items():
        if len(values) not in (0, len(sizes)):
            raise VerifyException(
                f"expects {name} to have same dimension-size as size of window dimensions ({len(sizes)}), but got: "
                f"{len(values)}."
            )
    ones = [1] * len(sizes)
    factors = {
        "stride": _values(strides) or ones,
        "base dilation factor": _values(base_dilations) or ones,
        "window dilation factor": _values(window_dilations) or ones,
    }
    for number, size in enumerate(sizes):
        values = {"value": 1 if size is None else size} | {name: factor[number] for name, factor in factors.items()}
        for name, value in values.items():
            if value <= 0:
                raise VerifyException(
                    f"expects window to have positive {name} for {number}-th window dimension, but got {value}."
                )
    paddings = padding or [(0, 0)] * len(sizes)
    return [
        WindowDimension(size, stride, pair, base_dilation, window_dilation)
        for size, pair, stride, base_dilation, window_dilation in zip(sizes, paddings, *factors.values(), strict=True)
    ]


def padding_pairs(padding: DenseIntOrFPElementsAttr | None) -> list[tuple[int, int]]:
    """Return the low and high padding of each dimension. Raises VerifyException unless the attribute has shape Nx2."""
    if padding is None:
        return []
    shape = padding.get_shape()
    if len(shape) != 2 or shape[1] != 2:
        listed = ", ".join(map(str, shape))
        raise VerifyException(f"expects the shape of padding-attribute to be {{N, 2}}, but got {{{listed}}}.")
    if shape[0] > MAX_DIMENSIONS:
        raise VerifyException(f"too many padding-entries for a window: {shape[0]}.")
    sizes = [*cast(Sequence[int], padding.get_values())]
    # A splat is stored as a single value, even if the tensor is empty.
    sizes = sizes * (2 * shape[0]) if len(sizes) == 1 else sizes
    return list(zip(sizes[::2], sizes[1::2], strict=True))


def padding_elements(pairs: Sequence[tuple[int, int]]) -> DenseIntOrFPElementsAttr:
    """Return the padding attribute with these (low, high) pairs; the inverse of `padding_pairs`."""
    sizes = [size for pair in pairs for size in pair]
    return DenseIntOrFPElementsAttr.from_list(TensorType(i64, (len(pairs), 2)), sizes)


def _values(array: I64Array | None) -> Sequence[int]:
    return () if array is None else array.get_values()
