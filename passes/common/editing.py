"""Edits: put operations somewhere, take them away, let values be used elsewhere.

Whoever edits by these functions alone need not think of what `sdy.dialect.walk` keeps: they say that it is outdated.
"""

from collections.abc import Sequence

from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue, Use
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from sdy.dialect.ops import PropagationBarrierOp
from sdy.dialect.walk import forget


class TellingPass(ModulePass):
    """A pass that calls `forget` at each edit of which operations there are, as the functions here do.

    The passes around it need not look for operations again that one of them has found.
    """


def insert(new: Operation, at: InsertPoint) -> None:
    """Put `new` there."""
    forget()
    Rewriter.insert_op(new, at)


def erase(op: Operation) -> None:
    """Take `op`, whose results nobody uses, away."""
    assert all(result.first_use is None for result in op.results)
    forget()
    op.detach()
    op.drop_all_references()


def replace(op: Operation, new: Operation | Sequence[SSAValue]) -> None:
    """Let `new`, or its results where it is an operation, which gets the place of `op`, be used instead of `op`."""
    if isinstance(new, Operation):
        insert(new, InsertPoint.after(op))
    values = new.results if isinstance(new, Operation) else new
    for result, value in zip(op.results, values, strict=True):
        result.replace_all_uses_with(value)
    erase(op)


def take_place(new: Operation, op: Operation) -> None:
    """Let `new`, made without results, have the place and the results of `op`, whose users need not be told."""
    assert not new.results
    assert op.parent is not None
    forget()
    op.parent.insert_op_before(new, op)
    new.results, op.results = op.results, new.results
    for result in new.results:
        result.op = new
    erase(op)


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
    insert(new, at)
