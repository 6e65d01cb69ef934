"""Exchange of rows between devices when the padding of a sharded dimension changes, which moves the shard boundaries.

For example, 12 rows over 4 devices are even. To be sharded further, over 8 devices, they are padded to 16, which are 4
rows on each of the 4 devices:

    device    has        needs
    0         0  1  2    0  1  2  3
    1         3  4  5    4  5  6  7
    2         6  7  8    8  9 10 11
    3         9 10 11    .  .  .  .
"""

from collections.abc import Collection, Sequence

from xdsl.ir import SSAValue

from sdy.passes.spmd.emit.device_shards import shape_of
from sdy.passes.spmd.emit.exchange import DimExchange, Filler
from sdy.passes.spmd.emit.exchange_builder import Devices, ExchangeBuilder
from sdy.passes.spmd.emit.op_conversion import Target
from sdy.passes.spmd.emit.padding import Insertion, sharding_without_partials
from sdy.passes.spmd.emit.resolution import zero_filler
from sdy.passes.spmd.shards.halo import ReadRanges, needed_rows
from sdy.passes.spmd.shards.layout import Layout
from sdy.sharding import TensorSharding
from sdy.stablehlo.emitter import with_shape


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
    exchanges = {
        dim: needed_rows(ReadRanges.resized(layout.shape[dim], layout.parts(dim), old[dim], shape[dim])) for dim in dims
    }
    sharding = sharding_without_partials(layout)
    if sharding is None or not all(exchange.pays for exchange in exchanges.values()):
        return None
    filler = zero_filler(at.source, value)
    scalar = TensorSharding.replicated_open(sharding.mesh, 0)
    names = {axis.name for axes in layout.axes for axis in axes}
    devices = Devices(layout.mesh, target.device_id, target.channels)
    builder = ExchangeBuilder(at.source, [(value, sharding), (filler.value, scalar)], names, devices)
    part, zero = builder.arguments
    for dim, exchange in exchanges.items():
        part = DimExchange(builder, sharding, dim, Filler(zero, is_zero=True)).run(part, exchange)
    sizes = [shape[dim] if dim in dims else size for dim, size in enumerate(old)]
    [result] = builder.finish([part], [with_shape(value, sizes)], [sharding], at.point)
    return result
