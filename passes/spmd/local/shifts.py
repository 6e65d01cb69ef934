"""Operations whose tensors all have the same dimensions, along which elements may move: slices, pads, windows.

Such a dimension can be split where each part of the result comes from the part of the operand that the same device has:

    slice [0:8:2]                        0 1 2 3 | 4 5 6 7   ->   0 2 | 4 6
    pad by -1 at each end                0 1 2 3 | 4 5 6 7   ->   1 2 3 | 4 5 6
    maxima of windows of 2, stride 2     0 1 2 3 | 4 5 6 7   ->   1 3 | 5 7
"""

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.ir import Operation

from sdy.device_groups import shard_indices
from sdy.ir.shapes import shape_of
from sdy.passes.spmd.layout import Layout
from sdy.passes.spmd.site import Lowerings, Site
from sdy.stablehlo.checks.windows import padding_pairs
from sdy.stablehlo.mapping import MapOp
from sdy.stablehlo.padding import PadOp
from sdy.stablehlo.reduce_window import ReduceWindowOp
from sdy.stablehlo.select_and_scatter import SelectAndScatterOp
from sdy.stablehlo.shape import ConcatenateOp
from sdy.stablehlo.slicing import SliceOp

SHIFTS = Lowerings()

Stays = Callable[[Any, int, int, Sequence[int]], bool]
"""Whether each part of the result comes from the same part of the operands.

Asked of an operation, for a dimension, with the number of parts and the size of a part of each tensor, operands first.
"""


def why_not_shifted_in_parts(op: Operation, layouts: Sequence[Layout]) -> str | None:
    """Why one of the operations of `STAYS`, which is not local yet, cannot be computed in parts; None if it can.

    `layouts` are those of operands and results.
    """
    tensors = [layout for layout in layouts if len(layout.shape) == len(layouts[0].shape)]
    for dim, axes in enumerate(layouts[0].axes):
        if any(layout.axes[dim] != axes for layout in tensors):
            return f"dimension {dim} is sharded in ways that do not fit together"
        parts = layouts[0].parts(dim)
        if parts > 1 and not STAYS[type(op)](op, dim, parts, [layout.shape[dim] // parts for layout in tensors]):
            if isinstance(op, ConcatenateOp):
                return f"dimension {dim} is sharded but the concatenation is on this dimension."
            return f"dimension {dim} is sharded, and a device would need data of others"
    return None


def _concatenation_stays(op: ConcatenateOp, dim: int, parts: int, sizes: Sequence[int]) -> bool:
    return dim != op.dimension.value.data


def _elements_stay(op: MapOp, dim: int, parts: int, sizes: Sequence[int]) -> bool:
    return True


def _slice_stays(op: SliceOp, dim: int, parts: int, sizes: Sequence[int]) -> bool:
    start, stride = op.start_indices.get_values()[dim], op.strides.get_values()[dim]
    before, after = sizes
    firsts = [start + part * after * stride for part in range(parts)]
    return all(
        part * before <= first and first + (after - 1) * stride < (part + 1) * before
        for part, first in enumerate(firsts)
    )


def _pad_stays(op: PadOp, dim: int, parts: int, sizes: Sequence[int]) -> bool:
    """The last element before a border must not get behind it, nor the first one behind it before it."""
    low, step = op.edge_padding_low.get_values()[dim], op.interior_padding.get_values()[dim] + 1
    before, after = sizes
    return all(
        low + (border * before - 1) * step < border * after <= low + border * before * step
        for border in range(1, parts)
    )


def _windows_stay(op: ReduceWindowOp | SelectAndScatterOp, dim: int, parts: int, sizes: Sequence[int]) -> bool:
    """Windows that do not overlap, each part having as many as fit into it side by side."""
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


STAYS: dict[type[Operation], Stays] = {
    ConcatenateOp: _concatenation_stays,
    MapOp: _elements_stay,
    PadOp: _pad_stays,
    ReduceWindowOp: _windows_stay,
    SelectAndScatterOp: _windows_stay,
    SliceOp: _slice_stays,
}


@SHIFTS.of(SliceOp)
def _slice(site: Site[SliceOp]) -> None:
    """Where the slice begins at different places of the parts, all is taken that it runs over first."""
    op, operand, emit = site.op, site.operands[0], site.before()
    shape, result, strides = shape_of(op.operand), shape_of(op.result), op.strides.get_values()
    firsts = _of_devices(
        operand,
        [
            [start + part * (after * stride - before) for part in range(operand.parts(dim))]
            for dim, (start, stride, before, after) in enumerate(
                zip(op.start_indices.get_values(), strides, shape, result, strict=True)
            )
        ],
    )
    reach = [(after - 1) * stride + 1 for after, stride in zip(result, strides, strict=True)]
    if all(len(set(of_dim)) == 1 for of_dim in firsts):
        starts = [of_dim[0] for of_dim in firsts]
        limits = [
            (before if limit == whole else start + size) if axes else limit
            for whole, axes, limit, before, start, size in zip(
                operand.shape, operand.axes, op.limit_indices.get_values(), shape, starts, reach, strict=True
            )
        ]
        site.replace(emit.slice(op.operand, starts, limits, strides))
        return
    run = emit.dynamic_slice(op.operand, [emit.of_device(of_dim) for of_dim in firsts], reach)
    site.replace(emit.slice(run, [0] * len(reach), reach, strides) if any(each > 1 for each in strides) else run)


@SHIFTS.of(PadOp)
def _pad(site: Site[PadOp]) -> None:
    """Where the parts are padded by different amounts, all are padded by the most, and what is too much is cut off."""
    op, operand, emit = site.op, site.operands[0], site.before()
    shape, result = shape_of(op.operand), shape_of(op.result)
    interior = op.interior_padding.get_values()
    lows = _of_devices(
        operand,
        [
            [low + part * (before * (between + 1) - after) for part in range(operand.parts(dim))]
            for dim, (low, between, before, after) in enumerate(
                zip(op.edge_padding_low.get_values(), interior, shape, result, strict=True)
            )
        ],
    )
    spread = [max(before - 1, 0) * between + before for before, between in zip(shape, interior, strict=True)]
    if all(len(set(of_dim)) == 1 for of_dim in lows):
        low = [of_dim[0] for of_dim in lows]
        high = [after - size - start for after, size, start in zip(result, spread, low, strict=True)]
        site.replace(emit.insert(PadOp(op.operand, op.padding_value, low, high, interior)))
        return
    low = [max(0, *of_dim) for of_dim in lows]
    high = [max(0, after - min(of_dim) - size) for after, of_dim, size in zip(result, lows, spread, strict=True)]
    padded = emit.insert(PadOp(op.operand, op.padding_value, low, high, interior))
    starts = [emit.of_device([most - each for each in of_dim]) for most, of_dim in zip(low, lows, strict=True)]
    site.replace(emit.dynamic_slice(padded, starts, result))


def _of_devices(layout: Layout, of_parts: Sequence[Sequence[int]]) -> list[list[int]]:
    """For each dimension, a number for each device, from those for each part."""
    return [
        [numbers[index] for index in shard_indices(axes, layout.mesh)]
        for axes, numbers in zip(layout.axes, of_parts, strict=True)
    ]
