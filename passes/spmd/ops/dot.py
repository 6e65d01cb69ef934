"""Matrix products."""

from sdy.passes.spmd.emit.op_conversion import PaddedSite
from sdy.passes.spmd.emit.operation_partitioning import OperationPartitioning, PartitioningTable
from sdy.rule import FactorKind
from sdy.stablehlo.dot import DotGeneralOp, DotOp


def _pad(site: PaddedSite[DotGeneralOp] | PaddedSite[DotOp]) -> bool:
    """Fill the padding of both operands along contracting dimensions with zeros: 0 * NaN is NaN."""
    if not site.carries(FactorKind.REDUCTION):
        return False
    for operand in (0, 1):
        site.fill(operand, site.reduced_dims(operand), 0)
    return True


PARTITIONING: PartitioningTable = dict.fromkeys((DotGeneralOp, DotOp), OperationPartitioning(pad=_pad))
