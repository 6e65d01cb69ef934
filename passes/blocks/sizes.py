"""How large values are, and how often loops run."""

from math import prod
from typing import cast

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, TensorType
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from sdy.passes.common.tensors import is_static_tensor
from sdy.stablehlo import AddOp, CompareOp, ConstantOp, WhileOp
from sdy.stablehlo.attributes.enums import ComparisonDirection
from sdy.stablehlo.checks.agreement import bit_width
from sdy.text.reading.dense import is_splat

_BYTE = 8


def value_bytes(value: SSAValue) -> int:
    """The bytes of a tensor, each element taking at least one; a value of another type, such as a token, takes none."""
    if not is_static_tensor(value.type):
        return 0
    type_ = cast(TensorType[Attribute], value.type)
    return prod(type_.get_shape()) * -(-bit_width(type_.element_type) // _BYTE)


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
    constant = value.owner
    if not isinstance(constant, Operation) or not isinstance(constant, ConstantOp):
        return None
    if not isinstance(constant.value, DenseIntOrFPElementsAttr) or not is_splat(constant.value):
        return None
    element = next(iter(constant.value.iter_values()))
    return element if isinstance(element, int) else None
