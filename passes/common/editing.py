"""Small edits: put an operation between a value and its uses."""

from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue, Use
from xdsl.rewriter import InsertPoint, Rewriter

from sdy.dialect.ops import PropagationBarrierOp


def before_barriers(value: SSAValue) -> SSAValue:
    """`value` as it was before any propagation barriers, which do nothing to it, that it passed through."""
    while isinstance(value, OpResult) and isinstance(value.op, PropagationBarrierOp):
        value = value.op.operands[0]
    return value


def after_value(value: SSAValue) -> InsertPoint:
    """The place right after `value` is defined."""
    if isinstance(value, BlockArgument):
        return InsertPoint.at_start(value.block)
    assert isinstance(value, OpResult)
    return InsertPoint.after(value.op)


def used_value(use: Use) -> SSAValue:
    """The value that is used."""
    return use.operation.operands[use.index]


def insert_for_use(use: Use, new: Operation, at: InsertPoint) -> SSAValue:
    """Insert `new`, which takes the used value, and let only this use have its result instead."""
    value = used_value(use)
    _insert_like(value, new, at)
    use.operation.operands[use.index] = new.results[0]
    return new.results[0]


def insert_for_other_uses(value: SSAValue, new: Operation, at: InsertPoint) -> SSAValue:
    """Insert `new`, which takes `value`, and let all other uses of it have its result instead."""
    _insert_like(value, new, at)
    value.replace_uses_with_if(new.results[0], lambda use: use.operation is not new)
    return new.results[0]


def _insert_like(value: SSAValue, new: Operation, at: InsertPoint) -> None:
    """Insert `new`, which stands for `value` and so has its location."""
    assert isinstance(value, BlockArgument | OpResult)
    new.location = value.location if isinstance(value, BlockArgument) else value.op.location
    Rewriter.insert_op(new, at)
