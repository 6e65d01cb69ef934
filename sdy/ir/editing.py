"""Edits: put operations somewhere, take them away, let values be used elsewhere.

Whoever edits by these functions alone need not think of what `sdy.ir.walking` keeps: they say that it is outdated.
"""

from collections.abc import Sequence

from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue, SSAValues, Use
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from sdy.ir.walking import invalidate


class AnalysisPreservingPass(ModulePass):
    """A pass that calls `invalidate` at each edit of which operations there are, as the functions here do.

    The passes around it need not look for operations again that one of them has found.
    """


def insert(new: Operation, at: InsertPoint) -> None:
    """Put `new` there."""
    invalidate(at.block.parent_op())
    Rewriter.insert_op(new, at)


def erase(op: Operation) -> None:
    """Take `op`, whose results nobody uses, away."""
    assert all(result.first_use is None for result in op.results)
    invalidate(op)
    op.detach()
    op.drop_all_references()


def replace(op: Operation, new: Operation | Sequence[SSAValue]) -> None:
    """Let `new`, or its results where it is an operation, which gets the place of `op`, be used instead of `op`."""
    if isinstance(new, Operation):
        insert(new, InsertPoint.after(op))
        new = new.results
    for result, value in zip(op.results, new, strict=True):
        _use_instead(result, value)
    erase(op)


def _use_instead(old: SSAValue, new: SSAValue) -> None:
    """As `old.replace_all_uses_with(new)`, in half the time."""
    for use in tuple(old.uses):
        user = use.operation
        operands = [*user._operands]  # pyright: ignore[reportPrivateUsage]
        operands[use.index] = new
        user._operands = SSAValues(operands)  # pyright: ignore[reportPrivateUsage]
        old.remove_use(use)
        new.add_use(use)
    if new.name_hint is None:
        new.name_hint = old.name_hint


def turn_into(op: Operation, op_class: type[Operation]) -> None:
    """Make `op` an operation of another class, which has the same properties, operands, results and regions.

    Neither its place nor its users have to be told, which is most of the work of a replacement.
    """
    invalidate(op)
    op.__class__ = op_class


def change_type(value: SSAValue, type_: Attribute) -> None:
    """Give `value` another type; it stays the value that its users have, so that these need not be told."""
    value._type = type_  # pyright: ignore[reportPrivateUsage]


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
