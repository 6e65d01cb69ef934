"""Removal of carried values that a loop need not carry: constant ones, and those that nothing uses."""

from collections.abc import Iterable

from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from sdy.ir.walking import captured_values
from sdy.passes.common.loops import carried_unchanged, carry_only
from sdy.stablehlo import WhileOp


def carry_less(loop: WhileOp) -> None:
    """Capture values that `loop` carries unchanged, and drop those that neither a result nor the condition needs."""
    for argument, begin in carried_unchanged(loop).items():
        assert isinstance(argument, BlockArgument)
        argument.replace_all_uses_with(begin)
        loop.results[argument.index].replace_all_uses_with(begin)
    body, test = loop.body.block, loop.cond.block.last_op
    assert body.last_op is not None
    assert test is not None
    needed = {result.index for result in loop.results if result.first_use is not None}
    needed |= _arguments_behind(test.operands, loop.cond.block)
    while more := _arguments_behind([body.last_op.operands[index] for index in needed], body) - needed:
        needed |= more
    if len(needed) < len(loop.results):
        for index in {*range(len(loop.results))} - needed:
            body.args[index].replace_all_uses_with(loop.operands[index])  # in operations that compute unused values
        carry_only(loop, sorted(needed))


def _arguments_behind(values: Iterable[SSAValue], block: Block) -> set[int]:
    """Return the numbers of the arguments of `block` that `values`, which it computes, depend on."""
    seen: set[SSAValue] = set()
    pending = [*values]
    while pending:
        value = pending.pop()
        if value not in seen:
            seen.add(value)
            if isinstance(value.owner, Operation) and value.owner.parent is block:
                pending += [*value.owner.operands, *captured_values(value.owner)]
    return {value.index for value in seen if isinstance(value, BlockArgument) and value.owner is block}
