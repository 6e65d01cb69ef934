"""Moving the body of one operation into another, or in its place."""

from xdsl.dialects.func import ReturnOp as FuncReturnOp
from xdsl.ir import Block, Operation, Region
from xdsl.rewriter import InsertPoint, Rewriter

from sdy.dialect.ops import ReturnOp
from sdy.ir.editing import replace
from sdy.ir.walking import invalidate


def move_body(source: Region, terminator: type[ReturnOp] | type[FuncReturnOp]) -> Region:
    """A new region with the blocks of `source`, each ending in a `terminator` of the same operands."""
    moved = Region()
    invalidate(source.parent)
    source.move_blocks(moved)
    for block in moved.blocks:
        last = block.last_op
        assert last is not None
        replace(last, terminator.create(operands=last.operands, location=last.location))
    return moved


def inline_body(operation: Operation, body: Block | None = None) -> None:
    """Put `body`, or the single block of `operation`, in the place of `operation`.

    Arguments become the operands of `operation`, its results become what the terminator returns.
    """
    body = body or operation.regions[0].block
    terminator = body.last_op
    assert terminator is not None
    Rewriter.inline_block(body, InsertPoint.before(operation), operation.operands)
    results = list(terminator.operands)
    Rewriter.erase_op(terminator)
    Rewriter.replace_op(operation, [], results)
