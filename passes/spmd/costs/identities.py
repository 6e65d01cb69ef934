"""Identity operations: those whose results are their operands, and that XLA erases before it fuses."""

from collections.abc import Iterator

from xdsl.ir import Operation, SSAValue, Use

from sdy.dialect.ops import DataFlowEdgeOp, PropagationBarrierOp, ReshardOp, ShardingConstraintOp
from sdy.stablehlo.control_flow import OptimizationBarrierOp

_IDENTITIES = DataFlowEdgeOp | OptimizationBarrierOp | PropagationBarrierOp | ReshardOp | ShardingConstraintOp


def is_identity(op: Operation) -> bool:
    """Return whether each result of `op` is the operand at the same position."""
    return isinstance(op, _IDENTITIES)


def source(value: SSAValue) -> SSAValue:
    """Return the value that `value` is, before identities."""
    while isinstance(owner := value.owner, Operation) and is_identity(owner):
        value = owner.operands[owner.results.index(value)]
    return value


def uses_of(value: SSAValue) -> Iterator[Use]:
    """Yield the uses of a value, those of its identities included, without the uses by identities."""
    for use in value.uses:
        if is_identity(use.operation):
            yield from uses_of(use.operation.results[use.index])
        else:
            yield use
