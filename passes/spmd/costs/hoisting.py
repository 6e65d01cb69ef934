"""Operations of a loop that XLA computes before it, since they do not depend on the iteration.

These are the rules of `WhileLoopInvariantCodeMotion` (`while_loop_invariant_code_motion.cc`): what takes no time in a
kernel is left in the loop unless other operations need it before, and so is what is larger than its operands.
"""

from collections.abc import Set

from xdsl.ir import Operation, SSAValue

from sdy.passes.common.loops import LoopInvariants
from sdy.passes.common.properties import value_bytes
from sdy.passes.spmd.costs.kernels import is_free
from sdy.stablehlo.control_flow import WhileOp


def hoisted_operations(loop: WhileOp) -> Set[Operation]:
    """Return the operations in the body of a loop that are computed before it."""
    hoisted, needed = set[Operation](), set[SSAValue]()
    for op in reversed(LoopInvariants(loop).operations()):
        is_worth_it = bool(op.results) and not is_free(op) and not _is_larger(op)
        if is_worth_it or not needed.isdisjoint(op.results):
            hoisted.add(op)
            needed.update(op.operands)
    return hoisted


def _is_larger(op: Operation) -> bool:
    """Return whether the results of `op` take more memory than its operands."""
    return sum(map(value_bytes, op.results)) > sum(map(_stored_bytes, {*op.operands}))


def _stored_bytes(value: SSAValue) -> int:
    """Return the bytes of a value that is not computed by each kernel for itself."""
    return 0 if isinstance(value.owner, Operation) and is_free(value.owner) else value_bytes(value)
