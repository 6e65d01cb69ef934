"""Maps: elementwise, but without a sharding rule."""

from collections.abc import Sequence

from sdy.passes.spmd.emit.compatibility import illegality_by_dims
from sdy.passes.spmd.emit.illegality import Illegality
from sdy.passes.spmd.emit.operation_partitioning import OperationPartitioning, PartitioningTable
from sdy.passes.spmd.shards.layout import Layout
from sdy.stablehlo.mapping import MapOp


def _illegality(op: MapOp, operands: Sequence[Layout], results: Sequence[Layout]) -> Illegality | None:
    return illegality_by_dims(operands, results, lambda dim, parts, sizes: True)


PARTITIONING: PartitioningTable = {MapOp: OperationPartitioning(illegality=_illegality)}
