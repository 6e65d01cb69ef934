"""Moving the body of one operation into another."""

from xdsl.dialects.func import ReturnOp as FuncReturnOp
from xdsl.ir import Region
from xdsl.rewriter import Rewriter

from sdy.dialect.ops import ReturnOp


def move_body(source: Region, terminator: type[ReturnOp] | type[FuncReturnOp]) -> Region:
    """A new region with the blocks of `source`, each ending in a `terminator` of the same operands."""
    moved = Region()
    source.move_blocks(moved)
    for block in moved.blocks:
        last = block.last_op
        assert last is not None
        Rewriter.replace_op(last, terminator.create(operands=last.operands, location=last.location))
    return moved
