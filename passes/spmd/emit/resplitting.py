"""Exchange of rows between devices when the padding of a sharded dimension changes, which moves the shard boundaries.

For example, 12 rows over 4 devices are even. To be sharded further, over 8 devices, they are padded to 16, which are 4
rows on each of the 4 devices:

    device    has        needs
    0         0  1  2    0  1  2  3
    1         3  4  5    4  5  6  7
    2         6  7  8    8  9 10 11
    3         9 10 11    .  .  .  .
"""

from collections.abc import Collection, Mapping, Sequence

from xdsl.ir import SSAValue

from sdy.dialect.collectives import AllGatherOp
from sdy.passes.spmd.emit.device_shards import shape_of
from sdy.passes.spmd.emit.exchange import DimExchange, Filler
from sdy.passes.spmd.emit.exchange_builder import Devices, ExchangeBuilder
from sdy.passes.spmd.emit.op_conversion import Target
from sdy.passes.spmd.emit.padding import Insertion, sharding_without_partials
from sdy.passes.spmd.emit.resolution import zero_filler
from sdy.passes.spmd.reshard.resize_cost import exchanges_before_gather, exchanges_in_slice
from sdy.passes.spmd.shards.halo import Exchange, ReadRanges, needed_rows
from sdy.passes.spmd.shards.layout import Layout
from sdy.sharding import TensorSharding
from sdy.stablehlo.emitter import Emitter, with_shape


def resplit(
    at: Insertion, value: SSAValue, layout: Layout, dims: Collection[int], shape: Sequence[int], target: Target
) -> SSAValue | None:
    """Change the padded size of the sharded dimensions `dims` by an exchange of rows.

    Args:
        at: The insertion point.
        value: The padded value.
        layout: The layout of `value`.
        dims: The dimensions to resize.
        shape: The shape with the new padded sizes.
        target: The target of the partitioned program.

    Returns:
        The resized value, or None if replicating the dimensions would move fewer bytes.
    """
    old = shape_of(value)
    parts = {dim: layout.parts(dim) for dim in dims}
    exchanges = {
        dim: needed_rows(ReadRanges.resharded(layout.shape[dim], count, old[dim], count, shape[dim]))
        for dim, count in parts.items()
    }
    sharding = sharding_without_partials(layout)
    if sharding is None or not all(exchange.pays for exchange in exchanges.values()):
        return None
    sizes = [shape[dim] if dim in dims else size for dim, size in enumerate(old)]
    return _exchange(at, value, (sharding, sharding), exchanges, sizes, layout, target)


def slice_with_exchange(
    at: Insertion, value: SSAValue, before: Layout, after: Layout, target: Target
) -> SSAValue | None:
    """Slice the shards of a value whose shard boundaries move, by an exchange of rows.

    Args:
        at: The insertion point.
        value: The padded value.
        before: The layout of `value`.
        after: The layout of the result, which splits dimensions of `before` further.
        target: The target of the partitioned program.

    Returns:
        The padded result, or None if no shard boundary moves.
    """
    exchanges = exchanges_in_slice(*_sizes(before, after))
    sharding, new_sharding = sharding_without_partials(before), sharding_without_partials(after)
    if not exchanges or sharding is None or new_sharding is None:
        return None
    return _exchange(at, value, (sharding, new_sharding), exchanges, after.padded_shape, after, target)


def gather_after_exchange(
    at: Insertion, op: AllGatherOp, before: Layout, after: Layout, target: Target
) -> SSAValue | None:
    """Gather the shards of a value whose shard boundaries move, after an exchange of rows.

    Args:
        at: The insertion point.
        op: The all-gather, of a padded value.
        before: The layout of its operand.
        after: The layout of its result.
        target: The target of the partitioned program.

    Returns:
        The padded result, or None if no shard boundary moves.
    """
    exchanges = exchanges_before_gather(*_sizes(before, after))
    sharding, new_sharding = sharding_without_partials(before), sharding_without_partials(after)
    if not exchanges or sharding is None or new_sharding is None:
        return None
    sizes = list(before.padded_shape)
    for dim, exchange in exchanges.items():
        sizes[dim] = exchange.ranges.length * exchange.ranges.parts
    aligned = _exchange(at, op.tensor, (sharding, sharding), exchanges, sizes, before, target)
    gathered = Emitter(at.point, at.source).insert(AllGatherOp(aligned, op.gathering_axes.data, new_sharding))
    trims = {
        dim: needed_rows(ReadRanges.trimmed(after.parts(dim), old, new))
        for dim, (old, new) in enumerate(zip(sizes, after.padded_shape, strict=True))
        if old != new
    }
    return _exchange(at, gathered, (new_sharding, new_sharding), trims, after.padded_shape, after, target)


def _sizes(before: Layout, after: Layout) -> tuple[Sequence[int], ...]:
    """Return the unpadded shape, the numbers of shards before and after, and the padded shapes before and after."""
    parts, new_parts = ([layout.parts(dim) for dim in range(len(layout.shape))] for layout in (before, after))
    return before.shape, parts, new_parts, before.padded_shape, after.padded_shape


def _exchange(
    at: Insertion,
    value: SSAValue,
    shardings: tuple[TensorSharding, TensorSharding],
    exchanges: Mapping[int, Exchange],
    shape: Sequence[int],
    layout: Layout,
    target: Target,
) -> SSAValue:
    """Emit exchanges along dimensions of `value`, and return the result of the global `shape`.

    Args:
        at: The insertion point.
        value: The padded value.
        shardings: The shardings of the value and the result.
        exchanges: The exchange along each dimension.
        shape: The padded shape of the result.
        layout: The layout of the result.
        target: The target of the partitioned program.
    """
    before, after = shardings
    filler = zero_filler(at.source, value)
    scalar = TensorSharding.replicated_open(before.mesh, 0)
    names = {axis.name for axes in layout.axes for axis in axes}
    devices = Devices(layout.mesh, target.device_id, target.channels)
    builder = ExchangeBuilder(at.source, [(value, before), (filler.value, scalar)], names, devices)
    part, zero = builder.arguments
    for dim, exchange in exchanges.items():
        part = DimExchange(builder, after, dim, Filler(zero, is_zero=True)).run(part, exchange)
    [result] = builder.finish([part], [with_shape(value, shape)], [after], at.point)
    return result
