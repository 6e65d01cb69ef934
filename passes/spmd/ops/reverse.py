"""Reversal along split dimensions: each device reverses its shard, and a reshard reverses the order of shards.

The reversed shards are those of a tensor on a mesh with its devices in the opposite order; a reshard to the original
mesh permutes them. The padding of an uneven dimension is first moved to the front, so that the reversal moves it back
to the end.
"""

from collections.abc import Sequence
from dataclasses import replace

from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from sdy.axes import AxisRef, total_size
from sdy.device_groups import device_groups, shard_indices
from sdy.dialect.meshes import named_meshes
from sdy.dialect.ops import MeshOp, ReshardOp
from sdy.mesh import Mesh
from sdy.passes.spmd.emit.compatibility import illegality_by_rule
from sdy.passes.spmd.emit.device_shards import shape_of
from sdy.passes.spmd.emit.exchange_builder import ExchangeBuilder, TensorEmitter
from sdy.passes.spmd.emit.illegality import Illegality
from sdy.passes.spmd.emit.op_conversion import carries
from sdy.passes.spmd.emit.operation_partitioning import OperationPartitioning, PartitioningTable
from sdy.passes.spmd.emit.resolution import (
    Resolution,
    layout_of,
    pad_to,
    padded_along,
    unpad,
    zero_filler,
)
from sdy.passes.spmd.shards.layout import Layout
from sdy.sharding import TensorSharding
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.emitter import before
from sdy.stablehlo.shape import ReverseOp


def _exchange(op: ReverseOp, resolution: Resolution) -> bool:
    """Reverse each shard, and then the order of shards."""
    layout, after = layout_of(op.operand), layout_of(op.result)
    sharding = layout.sharding
    if sharding is None or after.sharding is None or layout.axes != after.axes or 0 in layout.shape:
        return False
    dims = [dim for dim in layout.split_dims if dim in op.dimensions.get_values()]
    if not dims:
        return True
    if not resolution.planner.reversal_pays(*_shards_received(layout, dims)):
        return False
    value: SSAValue = op.operand
    if uneven := [dim for dim in dims if dim in layout.uneven_dims]:
        filled = pad_to(op, value, padded_along(value, uneven), zero_filler(op, value), sharding)
        value = _filler_to_front(op, filled, layout, uneven, resolution)
    axes = [axis for dim in dims for axis in layout.axes[dim]]
    mirrored = replace(sharding, mesh=_mirrored(sharding.mesh, layout.mesh, axes, resolution))
    emit = TensorEmitter(InsertPoint.before(op), op, mirrored)
    parts = emit.insert(
        ReverseOp.create(operands=[value], properties={"dimensions": op.dimensions}, result_types=[value.type])
    )
    moved = before(op).insert(ReshardOp(parts, after.sharding))
    Rewriter.replace_op(op, [], [unpad(op, moved, layout.shape, sharding)])
    return True


def _shards_received(layout: Layout, dims: Sequence[int]) -> tuple[float, int]:
    """Return the shards that a device receives if padding is moved and shards permuted, and if `dims` are gathered."""
    parts, sent = 1, 1.0
    for dim in dims:
        parts *= layout.parts(dim)
        shard = -(-layout.shape[dim] // layout.parts(dim))
        sent += (shard * layout.parts(dim) - layout.shape[dim]) / shard
    return sent, parts - 1


def _filler_to_front(
    op: ReverseOp, value: SSAValue, layout: Layout, dims: Sequence[int], resolution: Resolution
) -> SSAValue:
    """Return the padded `value` with its padding along `dims` at the front: devices shift rows to the next shards."""
    sharding = layout.sharding
    assert sharding is not None
    names = {axis.name for dim in dims for axis in layout.axes[dim]}
    builder = ExchangeBuilder(op, [(value, sharding)], names, resolution.devices(layout.mesh))
    part: SSAValue = builder.arguments[0]
    for dim in dims:
        amount = shape_of(value)[dim] - layout.shape[dim]
        part = _shifted(builder, part, sharding, dim, amount, resolution.planner.trims_messages)
    return builder.finish([part], [value.type], [sharding])[0]


def _shifted(
    builder: ExchangeBuilder, value: SSAValue, sharding: TensorSharding, dim: int, amount: int, trimmed: bool
) -> SSAValue:
    """Return the shards with all rows of a dimension shifted by `amount` towards the end.

    Args:
        builder: Builder of the exchange.
        value: The device's shard.
        sharding: Its sharding.
        dim: The dimension.
        amount: The number of rows to shift by, which may exceed a shard.
        trimmed: Whether to send only the rows that are needed, instead of full shards.
    """
    emit, axes, shape = builder.tensors(sharding), sharding.dims[dim].axes, shape_of(value)
    hops, rest = divmod(amount, shape[dim])

    def rows(of: SSAValue, start: int, limit: int) -> SSAValue:
        starts, limits = [0] * len(shape), list(shape)
        starts[dim], limits[dim] = start, limit
        return emit.slice(of, starts, limits)

    def received(of: SSAValue, hop: int) -> SSAValue:
        parts = total_size(axes, builder.devices.mesh)
        if hop >= parts:
            return emit.filled(tensor_type(of), 0)
        return of if hop == 0 else builder.permute(emit, of, axes, {part: part - hop for part in range(hop, parts)})

    front, back = (hops + 1, shape[dim] - rest, shape[dim]), (hops, 0, shape[dim] - rest)
    if trimmed:
        pieces = [received(rows(value, start, limit), hop) for hop, start, limit in (front, back) if start < limit]
    else:
        received_shards = {hop: received(value, hop) for hop in (hops, hops + 1)}
        pieces = [rows(received_shards[hop], start, limit) for hop, start, limit in (front, back)]
    return emit.concatenate(pieces, dim)


def _mirrored(name: str | Mesh, mesh: Mesh, axes: Sequence[AxisRef], resolution: Resolution) -> str | Mesh:
    """Return the mesh with the opposite device order along `axes`.

    It is an existing mesh of the module, or a new named mesh. It is inlined if `name` is an inlined mesh, or if the
    planner inlines meshes.
    """
    opposite = {device: group[-1 - index] for group in device_groups(axes, mesh) for index, device in enumerate(group)}
    mirrored = Mesh(mesh.axes, tuple(opposite[device] for device in mesh.device_order()))
    if isinstance(name, Mesh) or not resolution.planner.names_meshes:
        return mirrored
    module = resolution.symbols.module
    known = {mesh: name for name, mesh in named_meshes(module).items()}
    if mirrored in known:
        return known[mirrored]
    new = MeshOp(f"{name}_reversed", mirrored)
    Rewriter.insert_op(new, InsertPoint.at_start(module.body.block))
    return resolution.symbols.insert(new)


def _illegality(op: ReverseOp, operands: Sequence[Layout], results: Sequence[Layout]) -> Illegality | None:
    return None if _reverses_parts(op, operands[0], results[0]) else illegality_by_rule(op, operands, results)


def _reverses_parts(op: ReverseOp, operand: Layout, result: Layout) -> bool:
    """Return whether each device's shard of the result is the reverse of its shard of the operand."""
    reversed_dims = op.dimensions.get_values()
    return operand.mesh.axes == result.mesh.axes and all(
        shard_indices(after, result.mesh)
        == [
            operand.parts(dim) - 1 - index if dim in reversed_dims else index
            for index in shard_indices(before, operand.mesh)
        ]
        for dim, (before, after) in enumerate(zip(operand.axes, result.axes, strict=True))
    )


PARTITIONING: PartitioningTable = {ReverseOp: OperationPartitioning(_exchange, pad=carries, illegality=_illegality)}
