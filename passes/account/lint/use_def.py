"""Walks along uses and definitions: from a cast or a slice of a parameter back to it, and from a value to its users."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue, Use

from sdy.dialect.ops import ReshardOp
from sdy.passes.common.call_graph import calls_in
from sdy.passes.common.loops import carried_unchanged
from sdy.passes.common.properties import is_elementwise, uniform_number
from sdy.rules import movement
from sdy.stablehlo.control_flow import OptimizationBarrierOp, WhileOp
from sdy.stablehlo.elementwise import AddOp, ConvertOp, DivOp, MulOp, NegOp
from sdy.stablehlo.scatter import ScatterOp
from sdy.stablehlo.shape import ReshapeOp, TransposeOp
from sdy.stablehlo.slicing import DynamicSliceOp, DynamicUpdateSliceOp, SliceOp

_MOVES = ConvertOp | DynamicSliceOp | ReshapeOp | ReshardOp | SliceOp | TransposeOp


def is_updated_in_place(value: SSAValue) -> bool:
    """Return whether a slice of a value is updated, or a loop begins with it and changes it."""
    return any(updates_in_place(use) or _changes(use) for use in value.uses)


def updates_in_place(use: Use) -> bool:
    """Return whether an operation returns the used value with a slice updated."""
    return isinstance(use.operation, DynamicUpdateSliceOp | ScatterOp) and use.index == 0


def _changes(use: Use) -> bool:
    op = use.operation
    return isinstance(op, WhileOp) and op.body.block.args[use.index] not in carried_unchanged(op)


def elementwise_results(op: Operation) -> Sequence[SSAValue]:
    """Return the results of an elementwise operation, and none of another one."""
    return op.results if is_elementwise(op) else ()


def is_linear(op: Operation, value: SSAValue) -> bool:
    """Return whether `op` is linear in `value`, so that it commutes with a sum."""
    if isinstance(op, AddOp | ConvertOp | NegOp | ReshapeOp) or movement(op.name) is not None:
        return True
    others = [operand for operand in op.operands if operand is not value]
    is_scaled = isinstance(op, MulOp) or (isinstance(op, DivOp) and op.operands[0] is value)
    return is_scaled and len(others) == 1 and uniform_number(others[0]) is not None


def users_through(
    value: SSAValue, followed: Callable[[Operation], Iterable[SSAValue]] = elementwise_results
) -> Iterator[Operation]:
    """Yield the users of a value, each once, and those of the results that `followed` returns for each of them."""
    seen: set[Operation] = set()
    pending = [value]
    while pending:
        for use in pending.pop().uses:
            if use.operation not in seen:
                seen.add(use.operation)
                yield use.operation
                pending += followed(use.operation)


class UseDefChains:
    """Use-def chains of a module through casts, slices, reshapes, transposes, reshards, barriers, loops and calls."""

    def __init__(self, module: ModuleOp) -> None:
        self._calls: dict[str, list[CallOp]] = {}
        for call in calls_in(module):
            self._calls.setdefault(call.callee.root_reference.data, []).append(call)

    def trace(self, value: SSAValue) -> Iterator[SSAValue]:
        """Yield `value` and the values that it is moved or copied from, back to an argument or a computed value.

        A function argument continues with the operand of the function's first call.
        """
        seen: set[SSAValue] = set()
        at: SSAValue | None = value
        while at is not None and at not in seen:
            seen.add(at)
            yield at
            at = self._before(at)

    def calls_of(self, function: FuncOp) -> Sequence[CallOp]:
        """Return the calls of a function."""
        return self._calls.get(function.sym_name.data, ())

    def _before(self, value: SSAValue) -> SSAValue | None:
        if isinstance(value, OpResult):
            if isinstance(value.op, OptimizationBarrierOp):
                return value.op.operands[value.index]
            return value.op.operands[0] if isinstance(value.op, _MOVES) else None
        assert isinstance(value, BlockArgument)
        return self.incoming(value)

    def incoming(self, argument: BlockArgument) -> SSAValue | None:
        """Return the value that a loop carries unchanged as `argument`, or that the first call passes for it."""
        around = argument.block.parent_op()
        match around:
            case WhileOp():
                return carried_unchanged(around).get(argument)
            case FuncOp() if calls := self.calls_of(around):
                return calls[0].operands[argument.index]
            case _:
                return None
