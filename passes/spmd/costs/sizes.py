"""How large values are, and how often loops run."""

from xdsl.ir import BlockArgument, SSAValue

from sdy.dialect.constants import constant_number
from sdy.passes.common.num_bytes import num_bytes
from sdy.stablehlo import AddOp, CompareOp, WhileOp
from sdy.stablehlo.attributes.enums import ComparisonDirection


def value_bytes(value: SSAValue) -> int:
    """The bytes of a tensor, each element taking at least one; a value of another type, such as a token, takes none."""
    return num_bytes(value.type)


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
