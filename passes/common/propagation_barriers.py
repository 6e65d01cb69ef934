"""Propagation barriers."""

from xdsl.ir import OpResult, SSAValue

from sdy.dialect.ops import PropagationBarrierOp


def before_barriers(value: SSAValue) -> SSAValue:
    """Return the input of the propagation barriers that `value` passed through; barriers are identities."""
    while isinstance(value, OpResult) and isinstance(value.op, PropagationBarrierOp):
        value = value.op.operands[0]
    return value
