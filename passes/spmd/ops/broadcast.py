"""Broadcasts; `stablehlo.broadcast` has the sizes of its new dimensions as an attribute."""

from sdy.passes.spmd.emit.op_conversion import Site, carries
from sdy.passes.spmd.emit.operation_partitioning import OperationPartitioning, PartitioningTable
from sdy.stablehlo.attributes.operation_attributes import i64_array
from sdy.stablehlo.broadcast import BroadcastInDimOp, BroadcastOp
from sdy.stablehlo.checks.shape_checks import tensor_type


def _lower_broadcast(site: Site[BroadcastOp]) -> None:
    sizes = site.op.broadcast_sizes
    site.op.broadcast_sizes = i64_array(*tensor_type(site.op.result).get_shape()[: len(sizes)])


PARTITIONING: PartitioningTable = {
    BroadcastInDimOp: OperationPartitioning(pad=carries),
    BroadcastOp: OperationPartitioning(lower=_lower_broadcast),
}
