"""Random number generators, whose output for a shard depends on the global shape."""

from sdy.axes import AxisRef
from sdy.dialect.meshes import enclosing_module, named_meshes
from sdy.passes.common.properties import num_bytes
from sdy.passes.common.replication_cost import LocalBytes, warn_of_cost
from sdy.passes.spmd.emit.communication import all_reduce
from sdy.passes.spmd.emit.device_shards import mask_to_first_shard, take_shard
from sdy.passes.spmd.emit.illegality import Reason
from sdy.passes.spmd.emit.op_conversion import OpConversion
from sdy.passes.spmd.emit.operation_partitioning import OperationPartitioning, PartitioningTable
from sdy.passes.spmd.emit.replicate import replicate
from sdy.passes.spmd.shards.layout import Layout
from sdy.sharding import TensorSharding
from sdy.stablehlo.random import RngBitGeneratorOp, RngOp


def _lower_numbers(conversion: OpConversion[RngOp]) -> None:
    """Draw on every device and send the numbers of the first to all others: each device has its own generator state."""
    op, result = conversion.op, conversion.results[0]
    module = enclosing_module(op)
    meshes = named_meshes(module) if module is not None else {}
    name = next((name for name, mesh in meshes.items() if mesh.size > 1), None)
    if name is None:
        return
    sent = LocalBytes(num_bytes(result.type), 0)
    warn_of_cost(op, "is drawn on every device, which receives the first one's numbers", LocalBytes(0, 0), sent)
    mesh, emit = meshes[name], conversion.before()
    drawn = emit.insert(RngOp.create(operands=op.operands, properties=op.properties, result_types=[result.type]))
    axes = [AxisRef(axis) for axis in mesh if axis not in conversion.manual_axes]
    everywhere = Layout(result.type, TensorSharding.replicated_closed(name, len(result.shape)), mesh)
    numbers = all_reduce(
        emit, mask_to_first_shard(emit, drawn, 0, axes, mesh), axes, "sum", everywhere, conversion.target
    )
    conversion.replace(take_shard(emit, numbers, result.axes, result.mesh) if result.is_split else numbers)


def _lower_bits(conversion: OpConversion[RngBitGeneratorOp]) -> None:
    """Replicate: each device would generate the same bits, those of the first shard."""
    replicate(conversion, Reason.RANDOM_BY_SHAPE)


PARTITIONING: PartitioningTable = {
    RngBitGeneratorOp: OperationPartitioning(lower=_lower_bits),
    RngOp: OperationPartitioning(lower=_lower_numbers, always_lowered=True),
}
