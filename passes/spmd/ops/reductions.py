"""Reductions and matrix products, whose results are partial if the reduced dimensions are split.

The initial value of a reduction must count once: the first device of each group of partial results starts from it, the
others from the identity of the reduction.
"""

from sdy.passes.spmd.emit.device_shards import mask_to_first_shard
from sdy.passes.spmd.emit.illegality import Reason
from sdy.passes.spmd.emit.op_conversion import OpConversion, PaddedConversion
from sdy.passes.spmd.emit.operation_partitioning import OperationPartitioning, PartitioningTable
from sdy.passes.spmd.emit.replicate import replicate
from sdy.passes.spmd.shards.elements import identities_of, is_constant
from sdy.rule import FactorKind
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.dot import DotGeneralOp, DotOp
from sdy.stablehlo.reduction import ReduceOp


def _lower_reduce(conversion: OpConversion[ReduceOp]) -> None:
    op = conversion.op
    axes = [axis for dim in op.dimensions.get_values() for axis in conversion.operands[0].axes[dim]]
    if not axes:
        return
    identities = identities_of(op.body, [tensor_type(value).element_type for value in op.inputs])
    if identities is None:
        replicate(conversion, Reason.INITIAL_VALUE_COMBINED)
        return
    for index, identity in enumerate(identities, len(op.inputs)):
        if not is_constant(op.operands[index], identity):
            op.operands[index] = mask_to_first_shard(
                conversion.before(), op.operands[index], identity, axes, conversion.mesh
            )


def _pad_reduce(conversion: PaddedConversion[ReduceOp]) -> bool:
    op = conversion.op
    if not conversion.carries(FactorKind.REDUCTION):
        return False
    if not any(conversion.reduced_dims(operand) for operand in range(len(op.inputs))):
        return True
    identities = identities_of(op.body, [tensor_type(value).element_type for value in op.inputs])
    if identities is None:
        return False
    for operand, identity in enumerate(identities):
        conversion.fill(operand, conversion.reduced_dims(operand), identity)
    return True


def _pad_dot(conversion: PaddedConversion[DotGeneralOp] | PaddedConversion[DotOp]) -> bool:
    """Fill the padding of both operands along contracting dimensions with zeros: 0 * NaN is NaN."""
    if not conversion.carries(FactorKind.REDUCTION):
        return False
    for operand in (0, 1):
        conversion.fill(operand, conversion.reduced_dims(operand), 0)
    return True


_DOT = OperationPartitioning(pad=_pad_dot)

PARTITIONING: PartitioningTable = {
    DotGeneralOp: _DOT,
    DotOp: _DOT,
    ReduceOp: OperationPartitioning(pad=_pad_reduce, lower=_lower_reduce),
}
