"""Reshapes along uneven dimensions: devices exchange the elements that their shards of the result lack."""

from collections.abc import Sequence
from dataclasses import replace

from xdsl.rewriter import Rewriter

from sdy.axes import AxisRef, subtract
from sdy.passes.spmd.emit.compatibility import created_factors, illegality_by_rule
from sdy.passes.spmd.emit.device_shards import shape_of
from sdy.passes.spmd.emit.exchange import DimExchange, Filler
from sdy.passes.spmd.emit.exchange_builder import ExchangeBuilder
from sdy.passes.spmd.emit.illegality import Illegality
from sdy.passes.spmd.emit.op_conversion import PaddedConversion
from sdy.passes.spmd.emit.operation_partitioning import OperationPartitioning, PartitioningTable
from sdy.passes.spmd.emit.operation_reshards import reshard_around
from sdy.passes.spmd.emit.resolution import Resolution, layout_of, pad_to, unpad, zero_filler
from sdy.passes.spmd.shards.halo import Exchange
from sdy.passes.spmd.shards.layout import Layout
from sdy.passes.spmd.shards.reshaped_layouts import ReshapedLayouts
from sdy.sharding import TensorSharding
from sdy.stablehlo.shape import ReshapeOp

_FURTHEST = 1
"""The greatest distance in shards over which elements are exchanged; from further away, gathering is cheaper."""


def _exchange(op: ReshapeOp, resolution: Resolution) -> bool:
    """Exchange the elements that shards of the result lack, if each shard is one interval of elements."""
    sides = _sides(op)
    if sides is None or not sides.moving:
        return True
    if not resolution.planner.exchanges_in_reshape(sides):
        return False
    exchanges = sides.exchanges(lambda ranges: resolution.planner.exchange(ranges, _FURTHEST))
    if exchanges is None:
        return False
    _reshape_parts(op, sides, exchanges, resolution)
    return True


def _replicate(op: ReshapeOp, resolution: Resolution) -> bool:
    """Reshard operand and result such that no axis splits a group of dimensions whose elements move."""
    sides = _sides(op)
    if sides is None or not sides.moving:
        return False
    axes = sides.axes(sides.moving)
    return reshard_around(op, [_without(layout, axes) for layout in (sides.before, sides.after)])


def _pad(padded: PaddedConversion[ReshapeOp]) -> bool:
    """Reshape from the padded shape to the padded shape, if that leaves the padding behind the elements."""
    if padded.carries():
        return True
    [before], [after] = padded.operands, padded.results
    if before.sharding is None or after.sharding is None or 0 in before.shape:
        return False
    sides = ReshapedLayouts(before, after)
    return sides.has_same_parts(sides.groups) and sides.pads_groups_alike


def _illegality(op: ReshapeOp, operands: Sequence[Layout], results: Sequence[Layout]) -> Illegality | None:
    """Return why the reshape cannot be partitioned; result factors that the operand lacks cannot be split."""
    return illegality_by_rule(op, operands, results, lambda _, rule: created_factors(rule))


def _sides(op: ReshapeOp) -> ReshapedLayouts | None:
    before, after = layout_of(op.operand), layout_of(op.result)
    if before.sharding is None or after.sharding is None or before.mesh != after.mesh or 0 in before.shape:
        return None
    return ReshapedLayouts(before, after)


def _without(layout: Layout, axes: Sequence[AxisRef]) -> TensorSharding:
    assert layout.sharding is not None
    return layout.sharding.map_dims(lambda dim: replace(dim, axes=subtract(dim.axes, axes, layout.mesh)))


def _reshape_parts(
    op: ReshapeOp, sides: ReshapedLayouts, exchanges: Sequence[Exchange], resolution: Resolution
) -> None:
    """Flatten the groups whose elements move, exchange elements along them, and reshape each device's shard."""
    before, after = sides.before, sides.after
    assert before.sharding is not None
    assert after.sharding is not None
    filler = zero_filler(op, op.operand)
    operand = pad_to(op, op.operand, before.padded_shape, filler, before.sharding)
    names = {axis.name for axis in sides.axes([group for group in sides.groups if sides.is_uneven(group)])}
    scalar = TensorSharding.replicated_open(before.sharding.mesh, 0)
    builder = ExchangeBuilder(
        op, [(operand, before.sharding), (filler.value, scalar)], names, resolution.devices(before.mesh)
    )
    value, inner_filler = builder.arguments
    flat = sides.flattened_sharding()
    value = builder.tensors(flat).reshape(value, sides.flattened_shape(shape_of(value)))
    for dim, exchange in zip(sides.flat_dims, exchanges, strict=True):
        value = DimExchange(builder, flat, dim, Filler(inner_filler, is_zero=True)).run(value, exchange)
    type_ = after.padded_type()
    local = builder.local_type(type_, after.sharding)
    value = builder.tensors(after.sharding).insert(ReshapeOp.create(operands=[value], result_types=[local]))
    [result] = builder.finish([value], [type_], [after.sharding])
    Rewriter.replace_op(op, [], [unpad(op, result, after.shape, after.sharding)])


PARTITIONING: PartitioningTable = {ReshapeOp: OperationPartitioning(_exchange, _replicate, _pad, _illegality)}
