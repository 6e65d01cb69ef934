"""The gradient of a window's maximum along split dimensions: each window's element goes to the place that it selects.

A device computes all windows that reach into its part, those at its border together with its neighbours, and keeps of
the result what lies in its part.
"""

from dataclasses import dataclass

from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from sdy.dialect.ops import ReshardOp
from sdy.dialect.shardings import get_sharding
from sdy.passes.partitioning.emitter import before, with_shape
from sdy.passes.partitioning.halo.body import Body
from sdy.passes.partitioning.halo.exchange import DimExchange, Filler
from sdy.passes.partitioning.halo.reach import Exchange, Reach
from sdy.passes.partitioning.halo.resolution import (
    Resolution,
    captures,
    cut_off,
    filled_up,
    layout_of,
    padded_along,
    zero_filler,
)
from sdy.passes.partitioning.layout import Layout
from sdy.passes.partitioning.neutral import identities_of
from sdy.passes.partitioning.parts import shape_of
from sdy.sharding import TensorSharding
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.checks.windows import WindowDimension, padding_pairs, window_dimensions
from sdy.stablehlo.padding import PadOp
from sdy.stablehlo.select_and_scatter import SelectAndScatterOp


@dataclass(frozen=True)
class _Windows:
    """The windows along a dimension: of those, part t needs `count` from number `firsts[t]` on."""

    firsts: tuple[int, ...]
    count: int
    stride: int
    width: int

    @classmethod
    def of(cls, window: WindowDimension, size: int, parts: int) -> "_Windows":
        """Those that reach into the parts of a dimension of `size`."""
        assert window.size is not None
        shard = -(-size // parts)
        begins = [part * shard for part in range(parts)]
        firsts = tuple(-((window.size - 1 - begin) // window.stride) for begin in begins)
        ends = [-(-(begin + shard) // window.stride) for begin in begins]
        count = max(1, *(end - first for first, end in zip(firsts, ends, strict=True)))
        return cls(firsts, count, window.stride, window.size)

    def elements(self, size: int) -> Reach:
        """What each part needs of a source that has an element for each of `size` windows."""
        everything = (range(self.count),) * len(self.firsts)
        return Reach(size, -(-size // len(self.firsts)), self.firsts, everything, self.count)

    def rows(self, size: int) -> Reach:
        """What each part needs of an operand of `size` rows."""
        length = (self.count - 1) * self.stride + self.width
        starts = tuple(first * self.stride for first in self.firsts)
        return Reach(size, -(-size // len(starts)), starts, (range(length),) * len(starts), length)


def resolve_select_and_scatter(op: SelectAndScatterOp, resolution: Resolution) -> bool:
    """Exchange rows of the operand and of the source, where no window reaches over the border of the whole."""
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
        or captures(op)
        or any(windows[dim].padding != (0, 0) for dim in moving)
        or any(axis.name in names for dim, axes in enumerate(operand.axes) if dim not in moving for axis in axes)
        or identities_of(op.scatter, [tensor_type(op.source).element_type]) != [0]
    ):
        return False
    along = {dim: _Windows.of(windows[dim], operand.shape[dim], operand.parts(dim)) for dim in moving}
    exchanges = {
        dim: (resolution.plan(each.rows(operand.shape[dim])), resolution.plan(each.elements(source.shape[dim])))
        for dim, each in along.items()
    }
    if not all(exchange.pays for pair in exchanges.values() for exchange in pair):
        return False
    _compute(op, operand, along, exchanges, resolution)
    return True


def _compute(
    op: SelectAndScatterOp,
    layout: Layout,
    along: dict[int, _Windows],
    exchanges: dict[int, tuple[Exchange, Exchange]],
    resolution: Resolution,
) -> None:
    sharding = layout.sharding
    assert sharding is not None
    filler = zero_filler(op, op.operand)
    source = _split_source(op, sharding)
    tensors = [
        (filled_up(op, value, padded_along(value, along), filler, sharding), sharding) for value in (op.operand, source)
    ]
    scalar = TensorSharding.replicated_open(sharding.mesh, 0)
    names = {axis.name for dim in along for axis in layout.axes[dim]}
    scalars = [(op.init_value, scalar), (filler.value, scalar)]
    body = Body(op, [*tensors, *scalars], names, resolution.devices(layout.mesh))
    rows, elements, init, zero = body.arguments
    for dim, (of_operand, of_source) in exchanges.items():
        exchange = DimExchange(body, sharding, dim, Filler(zero, is_zero=True))
        rows, elements = exchange.run(rows, of_operand), exchange.run(elements, of_source)
    local = SelectAndScatterOp.create(
        operands=[rows, elements, init],
        properties=op.properties,
        result_types=[rows.type],
        regions=[op.detach_region(region) for region in list(op.regions)],
    )
    body.compute(local, [sharding])
    own: SSAValue = local.result
    for dim, (of_operand, _) in exchanges.items():
        own = _own_rows(body, sharding, own, init, dim, of_operand.reach)
    [result] = body.finish([own], [with_shape(op.result, padded_along(op.result, along))], [sharding])
    reshard = op.source.owner
    Rewriter.replace_op(op, [], [cut_off(op, result, layout.shape, sharding)])
    if isinstance(reshard, ReshardOp) and not reshard.result.uses:
        Rewriter.erase_op(reshard)


def _split_source(op: SelectAndScatterOp, sharding: TensorSharding) -> SSAValue:
    """The source, which the operation has whole, split like the operand: as it was before, if it was."""
    reshard = op.source.owner
    if isinstance(reshard, ReshardOp):
        given = get_sharding(reshard.input)
        if given is not None and (given.mesh, given.dim_axes) == (sharding.mesh, sharding.dim_axes):
            return reshard.input
    return before(op).insert(ReshardOp(op.source, sharding))


def _own_rows(
    body: Body, sharding: TensorSharding, value: SSAValue, init: SSAValue, dim: int, reach: Reach
) -> SSAValue:
    """Of the rows that windows reach those of the device's part; those that no window reaches are `init`."""
    offsets = [part * reach.shard - start for part, start in enumerate(reach.starts)]
    low, high, interior = ([0] * sharding.rank for _ in range(3))
    low[dim] = max(0, -min(offsets))
    high[dim] = max(0, max(offsets) + reach.shard - reach.length)
    emit = body.tensors(sharding)
    if low[dim] or high[dim]:
        value = emit.insert(PadOp(value, init, low, high, interior))
    sizes = list(shape_of(value))
    if sizes[dim] == reach.shard:
        return value
    sizes[dim] = reach.shard
    place = body.by_part(sharding.dims[dim].axes, [low[dim] + offset for offset in offsets])
    zero = body.scalars.integers([0], ())
    return emit.dynamic_slice(value, [place if each == dim else zero for each in range(sharding.rank)], sizes)
