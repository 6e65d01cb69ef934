"""Operations of a loop that XLA computes before it, since they do not depend on the iteration.

These are the rules of `WhileLoopInvariantCodeMotion` (`while_loop_invariant_code_motion.cc`): what takes no time in a
kernel is left in the loop unless other operations need it before, and so is what is larger than its operands.
"""

from collections.abc import Hashable, Iterable, Mapping, Set
from typing import NamedTuple

from xdsl.ir import Operation, SSAValue

from sdy.passes.common.loops import LoopInvariants
from sdy.passes.common.properties import value_bytes
from sdy.passes.spmd.costs.kernels import is_free
from sdy.passes.spmd.value_numbers import ValueNumbers
from sdy.rules import movement
from sdy.stablehlo.control_flow import WhileOp
from sdy.stablehlo.shape import ReshapeOp
from sdy.stablehlo.slicing import SliceOp


class Hoisted(NamedTuple):
    """The operations in the body of a loop that are computed before it."""

    operations: Set[Operation]
    read: Set[Operation]
    """The operations whose results the loop reads from memory."""
    repeated: Set[Operation]
    """The operations that the loop computes, too, as its kernels read their operands instead."""


def hoisted_operations(loop: WhileOp) -> Hoisted:
    """Return the operations in the body of a loop that are computed before it."""
    hoisted, read, repeated = set[Operation](), set[Operation](), set[Operation]()
    needed = set[SSAValue]()
    for op in reversed(LoopInvariants(loop).operations()):
        is_worth_it = bool(op.results) and not is_free(op) and not _moves(op) and not _is_larger(op)
        if is_worth_it or not needed.isdisjoint(op.results):
            users = {use.operation for result in op.results for use in result.uses}
            if not users <= hoisted or not users.isdisjoint(repeated):
                (read if is_worth_it else repeated).add(op)
            hoisted.add(op)
            needed.update(op.operands)
    return Hoisted(hoisted, read, repeated)


def first_of_equal(operations: Iterable[Operation]) -> Mapping[Operation, Operation]:
    """Return the first operation that is equal to each one: XLA merges them before it hoists it."""
    numbers, first = ValueNumbers(), dict[Hashable, Operation]()
    merged: dict[Operation, Operation] = {}
    for op in operations:
        numbers.number(op)
        merged[op] = first.setdefault(numbers.number_of(op.results[0]), op)
    return merged


def _moves(op: Operation) -> bool:
    """Return whether kernels read the operands of `op` in another order instead."""
    return isinstance(op, ReshapeOp | SliceOp) or movement(op.name) is not None


def _is_larger(op: Operation) -> bool:
    """Return whether the results of `op` take more memory than its operands."""
    return sum(map(value_bytes, op.results)) > sum(map(_stored_bytes, {*op.operands}))


def _stored_bytes(value: SSAValue) -> int:
    """Return the bytes of a value that is not computed by each kernel for itself."""
    return 0 if isinstance(value.owner, Operation) and is_free(value.owner) else value_bytes(value)
