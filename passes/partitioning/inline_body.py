"""Replacing an operation by its body."""

from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint, Rewriter


def inline_body(op: Operation) -> None:
    """Put the single block of `op` in its place: arguments become the operands, results what the terminator returns."""
    body = op.regions[0].block
    terminator = body.last_op
    assert terminator is not None
    Rewriter.inline_block(body, InsertPoint.before(op), op.operands)
    results = list(terminator.operands)
    Rewriter.erase_op(terminator)
    Rewriter.replace_op(op, [], results)
