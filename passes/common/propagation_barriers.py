"""Propagation barriers, which do nothing to values but that propagation stops at them."""

from xdsl.ir import OpResult, SSAValue

from sdy.dialect.ops import PropagationBarrierOp


def before_barriers(value: SSAValue) -> SSAValue:
    """`value` as it was before any propagation barriers, which do nothing to it, that it passed through."""
    while isinstance(value, OpResult) and isinstance(value.op, PropagationBarrierOp):
        value = value.op.operands[0]
    return value
