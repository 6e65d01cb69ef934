"""State of optimizers: the arguments that a step updates together with a parameter."""

from collections.abc import Mapping, Sequence

from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, OpResult, SSAValue

from sdy.dialect.ops import ReshardOp
from sdy.passes.auto.state import find_state
from sdy.passes.common.properties import is_elementwise


def optimizer_states(main: FuncOp) -> Mapping[BlockArgument, Sequence[BlockArgument]]:
    """Return the optimizer state of each parameter of a training step.

    State has the type of its parameter, and updates it elementwise, but is not updated from it.
    """
    end = main.get_return_op()
    returned = {main.args[index]: end.operands[result] for index, result in find_state(main).items()} if end else {}
    read = {argument: _read_elementwise(main, value) for argument, value in returned.items()}
    found: dict[BlockArgument, Sequence[BlockArgument]] = {}
    for parameter, arguments in read.items():
        others = [each for each in arguments if each is not parameter and each.type == parameter.type]
        found[parameter] = [each for each in others if each in read and parameter not in read[each]]
    return found


def _read_elementwise(main: FuncOp, value: SSAValue) -> list[BlockArgument]:
    """Return the arguments of `main` that a value is computed from elementwise."""
    arguments: dict[BlockArgument, None] = {}
    seen: set[SSAValue] = set()
    pending = [value]
    while pending:
        at = pending.pop()
        if at in seen:
            continue
        seen.add(at)
        if isinstance(at, BlockArgument) and at.owner is main.body.block:
            arguments[at] = None
        elif isinstance(at, OpResult) and (is_elementwise(at.op) or isinstance(at.op, ReshardOp)):
            pending += at.op.operands
    return sorted(arguments, key=lambda argument: argument.index)
