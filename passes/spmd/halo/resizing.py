"""Pads and slices along split dimensions: what each part of the result is made of begins at a known place."""

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from sdy.ir.shapes import shape_of
from sdy.passes.spmd.halo.body import Body, TensorEmitter
from sdy.passes.spmd.halo.exchange import DimExchange, Filler
from sdy.passes.spmd.halo.reach import Reach, whole_shards
from sdy.passes.spmd.halo.resolution import (
    Resolution,
    cut_off,
    filled_up,
    filler_of,
    layout_of,
    zero_filler,
)
from sdy.sharding import TensorSharding
from sdy.stablehlo.padding import PadOp
from sdy.stablehlo.slicing import SliceOp


@dataclass(frozen=True)
class _Dim:
    """A dimension of the result: each `stride`-th place from `-low` on, where rows stand `dilation` places apart."""

    low: int
    dilation: int = 1
    stride: int = 1

    def reach(self, size: int, result_size: int, parts: int) -> Reach:
        shard = -(-result_size // parts)
        length, total = ((count - 1) * self.stride + 1 for count in (shard, result_size))
        return Reach.steady(size, parts, self.low, shard * self.stride, length, total, self.dilation)


def dims_that_stay(op: PadOp | SliceOp) -> list[int]:
    """The split dimensions along which no part of the result has rows of another part."""
    reaches = _reaches(op)
    if isinstance(op, SliceOp):
        return [dim for dim, reach in reaches.items() if reach.is_identity]
    return [dim for dim, reach in reaches.items() if reach.dilation == 1 and len(whole_shards(reach).pieces) == 1]


def _reaches(op: PadOp | SliceOp) -> dict[int, Reach]:
    before, after = layout_of(op.operand), layout_of(op.result)
    dims = _dims(op)
    return {dim: dims[dim].reach(before.shape[dim], after.shape[dim], before.parts(dim)) for dim in before.split_dims}


def _dims(op: PadOp | SliceOp) -> list[_Dim]:
    if isinstance(op, SliceOp):
        return [_Dim(-start, stride=stride) for start, _, stride in op.ranges()]
    low, interior = op.edge_padding_low.get_values(), op.interior_padding.get_values()
    return [_Dim(before, between + 1) for before, between in zip(low, interior, strict=True)]


def resolve_pad(op: PadOp, resolution: Resolution) -> bool:
    """Pads along split dimensions place each row where it belongs; along others they are done by each device."""
    columns = [column.get_values() for column in (op.edge_padding_low, op.edge_padding_high, op.interior_padding)]
    whole = _whole_dims(op)

    def pad_whole_dims(emit: TensorEmitter, value: SSAValue, filler: SSAValue) -> SSAValue:
        low, high, interior = ([size if dim in whole else 0 for dim, size in enumerate(column)] for column in columns)
        return emit.insert(PadOp(value, filler, low, high, interior)) if any((*low, *high, *interior)) else value

    return _resize(op, filler_of(op.padding_value), pad_whole_dims, resolution)


def resolve_slice(op: SliceOp, resolution: Resolution) -> bool:
    """Slices of split dimensions: each device gets what is between the first and the last row of its part."""
    whole = _whole_dims(op)

    def slice_whole_dims(emit: TensorEmitter, value: SSAValue, _: SSAValue) -> SSAValue:
        ranges = [
            (start, limit, stride) if dim in whole else (0, size, stride)
            for dim, (size, (start, limit, stride)) in enumerate(zip(shape_of(value), op.ranges(), strict=True))
        ]
        if all(each == (0, size, 1) for each, size in zip(ranges, shape_of(value), strict=True)):
            return value
        starts, limits, strides = zip(*ranges, strict=True)
        return emit.slice(value, starts, limits, strides)

    return _resize(op, None, slice_whole_dims, resolution)


def _whole_dims(op: PadOp | SliceOp) -> set[int]:
    layout = layout_of(op.operand)
    return {dim for dim in range(len(layout.shape)) if dim not in layout.split_dims}


def _resize(
    op: PadOp | SliceOp,
    filler: Filler | None,
    resize_whole_dims: Callable[[TensorEmitter, SSAValue, SSAValue], SSAValue],
    resolution: Resolution,
) -> bool:
    before, after = layout_of(op.operand), layout_of(op.result)
    sharding = before.sharding
    if sharding is None or after.sharding is None or before.axes != after.axes or 0 in (*before.shape, *after.shape):
        return False
    reaches = _reaches(op)
    exchanges = {dim: resolution.plan(reach) for dim, reach in reaches.items() if not reach.is_identity}
    if not exchanges or not (resolution.least_communication or any(plan.moves for plan in exchanges.values())):
        return True
    if not all(plan.pays for plan in exchanges.values()):
        return False
    filler = filler or zero_filler(op, op.operand)
    operand = filled_up(op, op.operand, before.padded_shape, filler, sharding)
    scalar = TensorSharding.replicated_open(sharding.mesh, 0)
    names = {axis.name for axes in before.axes for axis in axes}
    body = Body(op, [(operand, sharding), (filler.value, scalar)], names, resolution.devices(before.mesh))
    value, inner_filler = body.arguments
    for dim, exchange in exchanges.items():
        value = DimExchange(body, sharding, dim, Filler(inner_filler, filler.is_zero)).run(value, exchange)
    value = resize_whole_dims(body.tensors(sharding), value, inner_filler)
    [result] = body.finish([value], [after.padded_type()], [sharding])
    Rewriter.replace_op(op, [], [cut_off(op, result, after.shape, sharding)])
    return True
