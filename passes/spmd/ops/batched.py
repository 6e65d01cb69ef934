"""Operations that are independent along their splittable (batch) dimensions: only their types change."""

from sdy.passes.spmd.emit.op_conversion import carries
from sdy.passes.spmd.emit.operation_partitioning import OperationPartitioning, PartitioningTable
from sdy.stablehlo.batch_norm import BatchNormInferenceOp
from sdy.stablehlo.chlo.creation import TopKOp
from sdy.stablehlo.linear_algebra import CholeskyOp, FftOp, TriangularSolveOp
from sdy.stablehlo.shape import BitcastConvertOp, TransposeOp
from sdy.stablehlo.sort import SortOp

_BATCHED = (BatchNormInferenceOp, BitcastConvertOp, CholeskyOp, FftOp, SortOp, TopKOp, TransposeOp, TriangularSolveOp)

PARTITIONING: PartitioningTable = dict.fromkeys(_BATCHED, OperationPartitioning(pad=carries))
