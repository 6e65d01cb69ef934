"""`sdy-resolve-concatenations`: what is put together along a split dimension is sent to where it belongs."""

from collections.abc import Iterator
from dataclasses import replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from sdy.dialect.ops import ReshardOp
from sdy.dialect.walk import forget, operations, operations_of
from sdy.passes.common.editing import TellingPass
from sdy.passes.common.symbols import Symbols
from sdy.passes.partitioning.emitter import with_shape
from sdy.passes.partitioning.halo.body import Body, Tensor
from sdy.passes.partitioning.halo.dealing import Run, messages, rounds
from sdy.passes.partitioning.halo.joined import JoinedPart
from sdy.passes.partitioning.halo.origins import rows_of
from sdy.passes.partitioning.halo.resolution import Resolution, cut_off, filled_up, layout_of, zero_filler
from sdy.passes.partitioning.layout import round_up
from sdy.passes.partitioning.parts import shape_of
from sdy.passes.partitioning.target import Channels, first_free_channel
from sdy.sharding import DimSharding, TensorSharding
from sdy.stablehlo.constants import PartitionIdOp
from sdy.stablehlo.shape import ConcatenateOp
from sdy.stablehlo.slicing import SliceOp


class ResolveConcatenationsPass(TellingPass):
    """Let each device receive the rows of its part of a concatenation, where that is split along its dimension.

    An operand that all devices have whole is read from there. Before::

        sdy.mesh @mesh = <["x"=2]>
        %2 = stablehlo.concatenate %0, %1, dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
            : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>

    After, shortened, %0 and %1 being split too: the first device sends its part of %1, and the second that of %0::

        %2 = sdy.manual_computation(%0, %1) in_shardings=[<@mesh, [{"x"}]>, <@mesh, [{"x"}]>]
            out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%a: tensor<2xf32>, %b: tensor<2xf32>) {
          %pool = stablehlo.concatenate %a, %b, dim = 0 : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
          %3 = stablehlo.dynamic_slice %pool, %start, sizes = [2] : (tensor<4xf32>, tensor<i64>) -> tensor<2xf32>
          %4 = "stablehlo.collective_permute"(%3) <{source_target_pairs = dense<[[0, 1], [1, 0]]>, ...
          ...
        } : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>

    Slices are read from what they are slices of. What would have to be sent in more rows than there are is left to be
    made whole.
    """

    name = "sdy-resolve-concatenations"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        concatenations = operations_of(op, ConcatenateOp)
        if not concatenations:
            return
        resolution = Resolution(
            Symbols(op), PartitionIdOp, Channels(first_free_channel(operations(op))), least_communication=True
        )
        for inner in concatenations:
            dim = inner.dimension.value.data
            result = next((value for value in _with_reshards_behind(inner.result) if layout_of(value).axes[dim]), None)
            if result is not None:
                _resolve(inner, result, resolution)


def _with_reshards_behind(value: SSAValue) -> Iterator[SSAValue]:
    """`value`, and what it is resharded to if that is its only use."""
    yield value
    user = value.get_user_of_unique_use()
    if isinstance(user, ReshardOp):
        yield from _with_reshards_behind(user.result)


def _resolve(op: ConcatenateOp, result: SSAValue, resolution: Resolution) -> None:
    dim, layout = op.dimension.value.data, layout_of(result)
    sharding, parts = layout.sharding, layout.parts(dim)
    assert sharding is not None
    names = {axis.name for axis in layout.axes[dim]}
    elsewhere = {axis.name for other, axes in enumerate(layout.axes) if other != dim for axis in axes}
    rows = rows_of(op, dim, layout)
    if rows is None or 0 in layout.shape or names & elsewhere:
        return
    sources = list(dict.fromkeys(each.source for each in rows))
    split = [source for source in sources if _is_split(source, dim, parts)]
    shards = [-(-shape_of(source)[dim] // parts) for source in split]
    runs = [Run(split.index(each.source), each.start, each.place, each.size) for each in rows if each.source in split]
    length = -(-layout.shape[dim] // parts)
    found = list(messages(runs, shards, length))
    exchanged = rounds([message for message in found if message.sender != message.receiver])
    if sum(each[0].size for each in exchanged) > (parts - 1) * sum(shards):
        return
    forget(op)
    tensors = [_tensor(op, source, dim, sharding, parts) for source in sources]
    body = Body(op, tensors, names, resolution.devices(layout.mesh))
    joined = JoinedPart(body, sharding, dim, parts, length)
    arguments = dict(zip(sources, body.arguments, strict=True))
    if split:
        pool = body.tensors(sharding).concatenate([arguments[source] for source in split], dim)
        for kept in rounds([message for message in found if message.sender == message.receiver]):
            joined.keep(pool, kept)
        for each in exchanged:
            joined.exchange(pool, each)
    for each in rows:
        if each.source not in split:
            begins = [part * length - each.place for part in range(parts)]
            places = [range(max(0, -begin), max(0, min(length, each.size - begin))) for begin in begins]
            joined.put(arguments[each.source], [begin + each.start for begin in begins], places)
    shape = list(layout.shape)
    shape[dim] = parts * length
    [outside] = body.finish([joined.rows], [with_shape(op.result, shape)], [sharding])
    result.replace_all_uses_with(cut_off(op, outside, layout.shape, sharding))
    _erase_unused(result)


def _is_split(value: SSAValue, dim: int, parts: int) -> bool:
    """Whether `value` is taken in parts; one of fewer rows than there are parts is rather taken whole."""
    return bool(layout_of(value).axes[dim]) and shape_of(value)[dim] >= parts


def _tensor(op: ConcatenateOp, value: SSAValue, dim: int, sharding: TensorSharding, parts: int) -> Tensor:
    """How the computation takes `value`: split with as many rows in each part, or whole along `dim`."""
    if not _is_split(value, dim, parts):
        dims = (DimSharding() if each == dim else split for each, split in enumerate(sharding.dims))
        return value, replace(sharding, dims=tuple(dims))
    shape = list(shape_of(value))
    shape[dim] = round_up(shape[dim], parts)
    if tuple(shape) != shape_of(value):
        value = filled_up(op, value, shape, zero_filler(op, value), sharding)
    return value, sharding


def _erase_unused(value: SSAValue) -> None:
    """Erase what makes `value`, which nobody uses, if that only moves elements."""
    op = value.owner
    if isinstance(op, ReshardOp | ConcatenateOp | SliceOp) and not value.uses:
        operands = list(op.operands)
        Rewriter.erase_op(op)
        for operand in dict.fromkeys(operands):
            _erase_unused(operand)
