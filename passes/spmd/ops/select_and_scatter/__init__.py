"""Select-and-scatter, the gradient of max-pooling, along split dimensions.

A device computes all windows that overlap its shard, for which it exchanges halos with its neighbours, and keeps the
rows of the result that are in its shard. Windows at a shard boundary are computed by both devices.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.ir import Region, SSAValue
from xdsl.rewriter import Rewriter

from sdy.dialect.ops import ReshardOp
from sdy.dialect.shardings import get_sharding
from sdy.ir.walking import captured_values
from sdy.passes.spmd.emit.compatibility import illegality_by_dims
from sdy.passes.spmd.emit.device_shards import shape_of
from sdy.passes.spmd.emit.exchange import DimExchange, Filler
from sdy.passes.spmd.emit.exchange_builder import ExchangeBuilder
from sdy.passes.spmd.emit.illegality import Illegality
from sdy.passes.spmd.emit.op_conversion import carries
from sdy.passes.spmd.emit.operation_partitioning import OperationPartitioning, PartitioningTable
from sdy.passes.spmd.emit.resolution import (
    Resolution,
    filler_of,
    layout_of,
    pad_to,
    padded_along,
    unpad,
    zero_filler,
)
from sdy.passes.spmd.ops.select_and_scatter.edges import Edges
from sdy.passes.spmd.shards.elements import identities_of
from sdy.passes.spmd.shards.halo import Exchange, ReadRanges
from sdy.passes.spmd.shards.layout import Layout
from sdy.passes.spmd.shards.sliding_window import windows_stay
from sdy.sharding import TensorSharding
from sdy.stablehlo.attributes.enums import ComparisonDirection
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.checks.windows import WindowDimension, padding_elements, padding_pairs, window_dimensions
from sdy.stablehlo.elementwise import CommutativeElementwiseOp
from sdy.stablehlo.emitter import before, with_shape
from sdy.stablehlo.mixed_elementwise import CompareOp
from sdy.stablehlo.padding import PadOp
from sdy.stablehlo.windows import SelectAndScatterOp


@dataclass(frozen=True)
class _PartWindows:
    """Windows along one dimension that overlap each shard.

    Attributes:
        firsts: The index of the first window that each shard needs.
        count: The number of windows that each shard needs.
        stride: The distance between windows in rows.
        width: The size of a window in rows.
        low: The number of rows by which the first window begins before the first row.
    """

    firsts: tuple[int, ...]
    count: int
    stride: int
    width: int
    low: int

    @classmethod
    def of(cls, window: WindowDimension, size: int, parts: int) -> "_PartWindows":
        """Return the windows that overlap each shard of a dimension of `size` rows."""
        assert window.size is not None
        shard = -(-size // parts)
        begins = [part * shard for part in range(parts)]
        low, _ = window.padding
        firsts = tuple(-((window.size - 1 - begin - low) // window.stride) for begin in begins)
        ends = [-(-(begin + low + shard) // window.stride) for begin in begins]
        count = max(1, *(end - first for first, end in zip(firsts, ends, strict=True)))
        return cls(firsts, count, window.stride, window.size, low)

    def elements(self, size: int) -> ReadRanges:
        """Return the elements that each shard needs of a source with one element for each of `size` windows."""
        everything = (range(self.count),) * len(self.firsts)
        return ReadRanges(size, -(-size // len(self.firsts)), self.firsts, everything, self.count)

    def rows(self, size: int) -> ReadRanges:
        """Return the rows that each shard needs of an operand of `size` rows."""
        length = (self.count - 1) * self.stride + self.width
        starts = tuple(first * self.stride - self.low for first in self.firsts)
        return ReadRanges(size, -(-size // len(starts)), starts, (range(length),) * len(starts), length)


def _exchange(op: SelectAndScatterOp, resolution: Resolution) -> bool:
    """Exchange halos of the operand and of the source, and compute each device's windows."""
    operand, source, result = layout_of(op.operand), layout_of(op.source), layout_of(op.result)
    sizes = op.window_dimensions.get_values() if op.window_dimensions else [1] * len(operand.shape)
    windows = window_dimensions(sizes, op.window_strides, padding_pairs(op.padding))
    moving = [dim for dim in operand.split_dims if windows[dim] != WindowDimension(1)]
    names = {axis.name for dim in moving for axis in operand.axes[dim]}
    if not moving:
        return True
    if (
        operand.axes != result.axes
        or 0 in (*operand.shape, *source.shape)
        or tensor_type(op.operand).element_type != tensor_type(op.result).element_type
        or captured_values(op)
        or not all(_is_within_reach(windows[dim], op) for dim in moving)
        or any(axis.name in names for dim, axes in enumerate(operand.axes) if dim not in moving for axis in axes)
        or identities_of(op.scatter, [tensor_type(op.source).element_type]) != [0]
    ):
        return False
    along: dict[int, _Along] = {}
    for dim in moving:
        each = _PartWindows.of(windows[dim], operand.shape[dim], operand.parts(dim))
        ranges_by_dim = each.rows(operand.shape[dim]), each.elements(source.shape[dim])
        along[dim] = _Along(windows[dim], *map(resolution.planner.exchange, ranges_by_dim))
    if not all(each.rows.pays and each.elements.pays for each in along.values()):
        return False
    _compute(op, operand, along, resolution)
    return True


def _is_within_reach(window: WindowDimension, op: SelectAndScatterOp) -> bool:
    """Return whether every window overlaps the tensor, and may read the edge row in place of padding.

    The latter holds without padding, and for selections of the greatest or least element.
    """
    assert window.size is not None
    padding_rows = max(window.padding)
    return padding_rows <= 0 or (padding_rows < window.size and _chooses_by_order(op.select))


def _chooses_by_order(select: Region) -> bool:
    """Return whether the body `select` is an ordering comparison of its two arguments."""
    compare, *rest = select.block.ops
    return (
        isinstance(compare, CompareOp)
        and len(rest) == 1
        and set(compare.operands) == set(select.block.args)
        and compare.comparison_direction.data in _ORDERS
    )


_ORDERS = {ComparisonDirection.GE, ComparisonDirection.GT, ComparisonDirection.LE, ComparisonDirection.LT}


@dataclass(frozen=True)
class _Along:
    """Exchange along one dimension: the window, and the exchanges of operand rows and source elements."""

    window: WindowDimension
    rows: Exchange
    elements: Exchange

    def edges(self, builder: ExchangeBuilder, sharding: TensorSharding, dim: int) -> Edges:
        """Return the edges of the operand beyond which windows extend."""
        before, behind = self.window.padding
        return Edges(builder, sharding, dim, self.rows.ranges, before > 0, behind > 0)


def _compute(op: SelectAndScatterOp, layout: Layout, along: dict[int, _Along], resolution: Resolution) -> None:
    sharding = layout.sharding
    assert sharding is not None
    filler = zero_filler(op, op.operand)
    source = _source_like_operand(op, sharding)
    tensors = [
        (pad_to(op, value, padded_along(value, along), filler, sharding), sharding) for value in (op.operand, source)
    ]
    scalar = TensorSharding.replicated_open(sharding.mesh, 0)
    names = {axis.name for dim in along for axis in layout.axes[dim]}
    scalars = [(op.init_value, scalar), (filler.value, scalar)]
    builder = ExchangeBuilder(op, [*tensors, *scalars], names, resolution.devices(layout.mesh))
    rows, elements, init, zero = builder.arguments
    for dim, each in along.items():
        exchange = DimExchange(builder, sharding, dim, Filler(zero, is_zero=True))
        rows = each.edges(builder, sharding, dim).repeated(exchange.run(rows, each.rows))
        elements = exchange.run(elements, each.elements)
    padding = [(0, 0) if dim in along else pair for dim, pair in enumerate(padding_pairs(op.padding))]
    local = SelectAndScatterOp.create(
        operands=[rows, elements, zero],
        properties={**op.properties, "padding": padding_elements(padding)} if padding else op.properties,
        result_types=[rows.type],
        regions=[op.detach_region(region) for region in list(op.regions)],
    )
    builder.compute(local, [sharding])
    own_rows: SSAValue = local.result
    combine = cast(type[CommutativeElementwiseOp], type(local.scatter.block.first_op))
    for dim, each in along.items():
        own_rows = each.edges(builder, sharding, dim).brought_back(own_rows, combine)
        own_rows = _own_rows(builder, sharding, own_rows, zero, dim, each.rows.ranges)
    if not filler_of(op.init_value).is_zero:
        emit = builder.tensors(sharding)
        own_rows = emit.binary(combine, emit.broadcast(init, (), shape_of(own_rows)), own_rows)
    [result] = builder.finish([own_rows], [with_shape(op.result, padded_along(op.result, along))], [sharding])
    reshard = op.source.owner
    Rewriter.replace_op(op, [], [unpad(op, result, layout.shape, sharding)])
    if isinstance(reshard, ReshardOp) and not reshard.result.uses:
        Rewriter.erase_op(reshard)


def _source_like_operand(op: SelectAndScatterOp, sharding: TensorSharding) -> SSAValue:
    """Return the source, split like the operand: the input of its reshard if that has this sharding, or a new reshard.

    The operation itself has a replicated source.
    """
    reshard = op.source.owner
    if isinstance(reshard, ReshardOp):
        input_sharding = get_sharding(reshard.input)
        if input_sharding is not None and (input_sharding.mesh, input_sharding.dim_axes) == (
            sharding.mesh,
            sharding.dim_axes,
        ):
            return reshard.input
    return before(op).insert(ReshardOp(op.source, sharding))


def _own_rows(
    builder: ExchangeBuilder, sharding: TensorSharding, value: SSAValue, zero: SSAValue, dim: int, ranges: ReadRanges
) -> SSAValue:
    """Return the rows of the device's shard from those that its windows cover; rows that no window covers are zero."""
    offsets = [part * ranges.shard - start for part, start in enumerate(ranges.starts)]
    low, high, interior = ([0] * sharding.rank for _ in range(3))
    low[dim] = max(0, -min(offsets))
    high[dim] = max(0, max(offsets) + ranges.shard - ranges.length)
    emit = builder.tensors(sharding)
    if low[dim] or high[dim]:
        value = emit.insert(PadOp(value, zero, low, high, interior))
    sizes = list(shape_of(value))
    if sizes[dim] == ranges.shard:
        return value
    sizes[dim] = ranges.shard
    place = builder.by_part(sharding.dims[dim].axes, [low[dim] + offset for offset in offsets])
    zero = builder.scalars.integers([0], ())
    return emit.dynamic_slice(value, [place if each == dim else zero for each in range(sharding.rank)], sizes)


def _illegality(op: SelectAndScatterOp, operands: Sequence[Layout], results: Sequence[Layout]) -> Illegality | None:
    return illegality_by_dims(operands, results, lambda dim, parts, sizes: windows_stay(op, dim, sizes))


PARTITIONING: PartitioningTable = {
    SelectAndScatterOp: OperationPartitioning(exchange=_exchange, pad=carries, illegality=_illegality),
}
