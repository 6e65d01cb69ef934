"""Operations that each device computes on its own shards: batched operations, broadcasts and maps.

Batched operations are independent along their splittable (batch) dimensions. `stablehlo.broadcast` has the sizes of its
new dimensions as an attribute. Maps are elementwise, but have no sharding rule.
"""

from collections.abc import Sequence

from sdy.passes.spmd.emit.compatibility import illegality_by_dims
from sdy.passes.spmd.emit.illegality import Illegality
from sdy.passes.spmd.emit.op_conversion import OpConversion, carries
from sdy.passes.spmd.emit.operation_partitioning import OperationPartitioning, PartitioningTable
from sdy.passes.spmd.shards.layout import Layout
from sdy.stablehlo.attributes.operation_attributes import i64_array
from sdy.stablehlo.batch_norm import BatchNormInferenceOp
from sdy.stablehlo.broadcast import BroadcastInDimOp, BroadcastOp
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.chlo.creation import TopKOp
from sdy.stablehlo.linear_algebra import CholeskyOp, FftOp, TriangularSolveOp
from sdy.stablehlo.mapping import MapOp
from sdy.stablehlo.shape import BitcastConvertOp, TransposeOp
from sdy.stablehlo.sort import SortOp

_BATCHED = (BatchNormInferenceOp, BitcastConvertOp, CholeskyOp, FftOp, SortOp, TopKOp, TransposeOp, TriangularSolveOp)


def _lower_broadcast(conversion: OpConversion[BroadcastOp]) -> None:
    sizes = conversion.op.broadcast_sizes
    conversion.op.broadcast_sizes = i64_array(*tensor_type(conversion.op.result).get_shape()[: len(sizes)])


def _illegality_map(op: MapOp, operands: Sequence[Layout], results: Sequence[Layout]) -> Illegality | None:
    return illegality_by_dims(operands, results, lambda dim, parts, sizes: True)


PARTITIONING: PartitioningTable = {
    **dict.fromkeys((*_BATCHED, BroadcastInDimOp), OperationPartitioning(pad=carries)),
    BroadcastOp: OperationPartitioning(lower=_lower_broadcast),
    MapOp: OperationPartitioning(illegality=_illegality_map),
}
