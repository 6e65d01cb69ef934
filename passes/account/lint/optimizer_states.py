"""State of optimizers: the arguments that a step updates together with a parameter."""

from collections.abc import Mapping, Sequence

from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, OpResult, SSAValue

from sdy.dialect.ops import ReshardOp
from sdy.passes.auto.state import find_state
from sdy.passes.common.properties import is_elementwise
from sdy.stablehlo.elementwise import ConvertOp


def optimizer_states(main: FuncOp) -> Mapping[BlockArgument, Sequence[BlockArgument]]:
    """Return the optimizer state of each parameter of a training step.

    State has the type of its parameter. The parameter is updated elementwise from its state, or an average is updated
    from the parameter, but not both. Products use a parameter, but only elementwise operations use state.
    """
    end = main.get_return_op()
    returned = {main.args[index]: end.operands[result] for index, result in find_state(main).items()} if end else {}
    read = {argument: _read_elementwise(main, value) for argument, value in returned.items()}
    found: dict[BlockArgument, list[BlockArgument]] = {}
    for reader, arguments in read.items():
        for other in arguments:
            if other is not reader and other.type == reader.type and other in read and reader not in read[other]:
                is_average = _is_elementwise_only(reader) and not _is_elementwise_only(other)
                parameter, state = (other, reader) if is_average else (reader, other)
                found.setdefault(parameter, []).append(state)
    return found


def _is_elementwise_only(value: SSAValue) -> bool:
    """Return whether only elementwise operations use a value, also where it is cast or resharded first."""
    users = [use.operation for use in value.uses]
    return all(
        _is_elementwise_only(op.results[0]) if isinstance(op, ConvertOp | ReshardOp) else is_elementwise(op)
        for op in users
    )


def elementwise_leaves(value: SSAValue) -> set[SSAValue]:
    """Return the values that a value is computed from elementwise, and that are not."""
    leaves: set[SSAValue] = set()
    seen: set[SSAValue] = set()
    pending = [value]
    while pending:
        at = pending.pop()
        if at in seen:
            continue
        seen.add(at)
        if isinstance(at, OpResult) and (is_elementwise(at.op) or isinstance(at.op, ReshardOp)):
            pending += at.op.operands
        else:
            leaves.add(at)
    return leaves


def _read_elementwise(main: FuncOp, value: SSAValue) -> list[BlockArgument]:
    """Return the arguments of `main` that a value is computed from elementwise."""
    leaves = elementwise_leaves(value)
    arguments = [leaf for leaf in leaves if isinstance(leaf, BlockArgument) and leaf.owner is main.body.block]
    return sorted(arguments, key=lambda argument: argument.index)
