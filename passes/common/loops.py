"""Loops: how often they run, and what is the same in every turn."""

from collections.abc import Iterator, Sequence

from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from sdy.dialect.constants import constant_number
from sdy.passes.common.op_properties import is_pure
from sdy.stablehlo.attributes.enums import ComparisonDirection
from sdy.stablehlo.control_flow import OptimizationBarrierOp, WhileOp
from sdy.stablehlo.elementwise import AddOp
from sdy.stablehlo.mixed_elementwise import CompareOp


def loops_around(op: Operation) -> Iterator[WhileOp]:
    """The loops in whose regions `op` is, the innermost first."""
    while (around := op.parent_op()) is not None:
        if isinstance(around, WhileOp):
            yield around
        op = around


def carried_unchanged(loop: WhileOp) -> dict[SSAValue, SSAValue]:
    """Those arguments of the loop's regions that are in every turn what the loop begins with, each with that."""
    terminator = loop.body.block.last_op
    assert terminator is not None
    carried = zip(loop.operands, loop.cond.block.args, loop.body.block.args, terminator.operands, strict=True)
    return {
        argument: begin for begin, *arguments, returned in carried if returned in arguments for argument in arguments
    }


class Invariants:
    """What is the same in every turn of a loop: what could as well be computed before it, by the same operations."""

    def __init__(self, loop: WhileOp):
        self.begins = carried_unchanged(loop)
        """What the loop carries around unchanged, and what that is before the loop."""
        self._loop = loop

    def made_by(self, values: Sequence[SSAValue]) -> list[Operation] | None:
        """The operations of the loop that make `values`, each after those that it uses; None where one may change."""
        ordered: dict[Operation, None] = {}
        pending = [*values]
        while pending:
            value = pending[-1]
            op = value.owner
            if op in ordered or value in self.begins or not self._is_inside(value):
                pending.pop()
                continue
            if not isinstance(op, Operation) or not self._may_come_before(op):
                return None
            missing = [
                operand
                for operand in op.operands
                if operand.owner not in ordered and operand not in self.begins and self._is_inside(operand)
            ]
            pending += missing
            if not missing:
                pending.pop()
                ordered[op] = None
        return list(ordered)

    def _is_inside(self, value: SSAValue) -> bool:
        block = value.owner if isinstance(value.owner, Block) else value.owner.parent
        around = block.parent_op() if block is not None else None
        return around is self._loop or (around is not None and self._loop in loops_around(around))

    def _may_come_before(self, op: Operation) -> bool:
        """Not what is in a branch, which may not be run in any turn."""
        in_each_turn = op.parent in (self._loop.cond.block, self._loop.body.block)
        return in_each_turn and not op.regions and is_pure(op) and not isinstance(op, OptimizationBarrierOp)


def loop_trips(op: WhileOp) -> int | None:
    """How often a loop that counts from a constant to a constant in constant steps runs; None for another loop."""
    test = op.cond.block.last_op
    condition = test.operands[0].owner if test is not None else None
    if not isinstance(condition, CompareOp) or condition.comparison_direction.data is not ComparisonDirection.LT:
        return None
    counter, end = condition.operands[0], _constant(condition.operands[1], op)
    if not isinstance(counter, BlockArgument) or counter.owner is not op.cond.block:
        return None
    begin, step = _constant(op.operands[counter.index], op), _step(op, counter.index)
    if begin is None or end is None or not step:
        return None
    return max(0, -(-(end - begin) // step))


def _step(op: WhileOp, index: int) -> int | None:
    """What a turn adds to the carried value `index`."""
    body = op.body.block
    terminator = body.last_op
    following = terminator.operands[index].owner if terminator is not None else None
    if not isinstance(following, AddOp) or body.args[index] not in following.operands:
        return None
    left, right = following.operands
    return _constant(right if left is body.args[index] else left, op)


def _constant(value: SSAValue, loop: WhileOp) -> int | None:
    """The integer that a value is known to be; one that the loop carries around unchanged is what it begins with."""
    if isinstance(value, BlockArgument) and value.owner in (loop.cond.block, loop.body.block):
        terminator = loop.body.block.last_op
        if terminator is None or terminator.operands[value.index] is not loop.body.block.args[value.index]:
            return None
        return _constant(loop.operands[value.index], loop)
    number = constant_number(value)
    return number if isinstance(number, int) else None
