"""Moving and inlining of regions."""

from xdsl.dialects.func import ReturnOp as FuncReturnOp
from xdsl.ir import Block, Operation, Region
from xdsl.rewriter import InsertPoint, Rewriter

from sdy.dialect.ops import ReturnOp
from sdy.ir.editing import replace
from sdy.ir.walking import invalidate


def move_body(source: Region, terminator: type[ReturnOp] | type[FuncReturnOp]) -> Region:
    """Move the blocks of `source` to a new region, and replace each terminator by one of class `terminator`."""
    moved = Region()
    invalidate(source.parent)
    source.move_blocks(moved)
    for block in moved.blocks:
        last = block.last_op
        assert last is not None
        replace(last, terminator.create(operands=last.operands, location=last.location))
    return moved


def inline_body(operation: Operation, body: Block | None = None) -> None:
    """Replace `operation` by `body`, by default its single block.

    The operands of `operation` replace the block's arguments, and the terminator's operands replace its results.
    """
    body = body or operation.regions[0].block
    terminator = body.last_op
    assert terminator is not None
    Rewriter.inline_block(body, InsertPoint.before(operation), operation.operands)
    results = list(terminator.operands)
    Rewriter.erase_op(terminator)
    Rewriter.replace_op(operation, [], results)
