"""Whether a module is what its operations say it must be.

xDSL's `Operation.verify` says what is wrong but not where; here the operation is named and pointed at. What each
operation says of itself is its own `verify_`; the rest is what holds for all of them: blocks end in a terminator,
branches stay in their region, and a value is defined before it is used.
"""

import re

from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.traits import IsolatedFromAbove, IsTerminator, NoTerminator
from xdsl.utils.exceptions import VerifyException

from sdy.diagnostics import error, op_error
from sdy.dialect.verifiers import verify_attributes
from sdy.text.builtin_checks import CHECKS


def verify(top: Operation) -> None:
    """Raises DiagnosticError at the first operation that is not valid."""
    _verify_operation(top)
    waiting = [top]
    while waiting:
        parent = waiting.pop()
        for region in parent.regions:
            for block in region.blocks:
                for op in block.ops:
                    _verify_operation(op)
                    if op.regions:
                        waiting.append(op)
                _verify_block(block, parent)


def _verify_operation(op: Operation) -> None:
    verify_attributes(op)
    check = CHECKS.get(type(op))
    if check is not None:
        check(op)
    try:
        op.verify_()
    except VerifyException as problem:
        if op.has_trait(IsolatedFromAbove, value_if_unregistered=False):
            _verify_isolation(op)
        raise op_error(op, _in_words_of_mlir(str(problem))) from problem
    for successor in op.successors:
        if op.next_op is not None:
            raise op_error(op, "with block successors must terminate its parent block")
        if op.parent is None or successor.parent is not op.parent.parent:
            raise op_error(op, "branching to block of a different region")


def _in_words_of_mlir(message: str) -> str:
    """A value whose type the definition does not allow, which xDSL tells on two lines."""
    return re.sub(r"(operand|result) '\w+' at positions? (\d+).*does not verify:\n(?=must be)", r"\1 #\2 ", message)


def _verify_block(block: Block, parent: Operation) -> None:
    if parent.has_trait(NoTerminator):
        return
    last = block.last_op
    if last is None:
        raise error(parent, "empty block: expect at least a terminator")
    if not last.has_trait(IsTerminator):
        raise error(last, f"'{last.name}' op block with no terminator")
    _verify_order(block)


def _verify_order(block: Block) -> None:
    """A value defined in `block` is used after its definition there, whatever the depth of the use."""
    defined: set[SSAValue] = set(block.args)
    for op in block.ops:
        for user in op.walk() if op.regions else (op,):
            for number, operand in enumerate(user.operands):
                if operand not in defined and isinstance(operand, OpResult) and operand.op.parent is block:
                    raise error(
                        user, f"operand #{number} does not dominate this use", (operand, "operand defined here")
                    )
        defined.update(op.results)


def _verify_isolation(isolated: Operation) -> None:
    for op in isolated.walk():
        for operand in op.operands if op is not isolated else ():
            if not isolated.is_ancestor(operand.owner):
                raise error(
                    op,
                    f"'{op.name}' op using value defined outside the region",
                    (isolated, "required by region isolation constraints"),
                )
