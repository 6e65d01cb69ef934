"""`sdy-mark-row-loops`: find loops that devices may end with their own rows."""

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import NamedTuple

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr, TensorType, i1
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from sdy.dialect.attributes import ROW_LOOP
from sdy.dialect.collectives import AllReduceOp, CollectiveOp
from sdy.dialect.constants import constant_number
from sdy.dialect.shardings import get_sharding
from sdy.ir.editing import AnalysisPreservingPass
from sdy.ir.walking import operations, operations_of
from sdy.passes.common.loops import arguments_behind
from sdy.passes.communication.row_predicates import RowElements, false_at_end
from sdy.passes.spmd.plan.reduction_kinds import region_reduction
from sdy.passes.spmd.value_numbers import ValueNumbers
from sdy.sharding import equivalent
from sdy.stablehlo.broadcast import BroadcastInDimOp
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.control_flow import WhileOp
from sdy.stablehlo.elementwise import AndOp, ConvertOp, NotOp, OrOp
from sdy.stablehlo.mixed_elementwise import SelectOp
from sdy.stablehlo.reduction import ReduceOp
from sdy.stablehlo.shape import ReshapeOp

_CONDITION = TensorType(i1, ())


class MarkRowLoopsPass(AnalysisPreservingPass):
    """Mark loops that go on while any row does, and in which rows that have ended do not change.

    The batching rule of JAX's `while_loop` makes such loops. If the rows are sharded, each iteration has an all-reduce.
    Before::

        %0 = stablehlo.while(%x = %arg0) : tensor<8xf32>
        cond {
          %1 = stablehlo.compare LT, %x, %c : tensor<8xi1>
          %2 = stablehlo.reduce(%1 init: %false) applies stablehlo.or across dimensions = [0]
          %3 = sdy.all_reduce max {"data"} %2 out_sharding=<@mesh, []> : tensor<i1>
          stablehlo.return %3 : tensor<i1>
        } do {
          %1 = stablehlo.compare LT, %x, %c : tensor<8xi1>
          %2 = stablehlo.multiply %x, %x : tensor<8xf32>
          %3 = stablehlo.select %1, %2, %x : tensor<8xi1>, tensor<8xf32>
          stablehlo.return %3 : tensor<8xf32>
        }

    After::

        %0 = stablehlo.while(%x = %arg0) : tensor<8xf32> attributes {sdy.row_loop = ""}

    A device whose rows have all ended may leave a marked loop, with the same results as if it had stayed, if nothing
    else in it communicates; `sdy-end-row-loops` checks that in the per-device program, and erases the all-reduce. The
    proof has three steps. The end of the rows determines booleans in the body; these determine the carried values that
    no longer change; and neither the condition of the rows nor an operation after the loop reads other carried values.
    If a step fails, the attribute has the reason.

    The condition may test other values too, such as an iteration count: `any(active) and i < n`. Not found are loops
    whose condition communicates otherwise, such as a loop until a norm over all rows is small.
    """

    name = "sdy-mark-row-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in operations_of(op, FuncOp):
            loops = {loop: found for loop in operations_of(function, WhileOp) if (found := _ending(loop)) is not None}
            if loops:
                numbers = ValueNumbers()
                elements = RowElements(numbers)
                for inner in operations(function)[1:]:
                    numbers.number(inner)
                    elements.add(inner)
                for loop, ending in loops.items():
                    at_end = _at_end(loop, ending, numbers, elements)
                    loop.attributes[ROW_LOOP] = StringAttr(next(_obstacles(loop, ending, numbers, at_end), ""))


class _Ending(NamedTuple):
    """The rows that end a loop, and the boolean that each of them has then."""

    rows: SSAValue
    at_end: bool


def _ending(loop: WhileOp) -> _Ending | None:
    """Return the rows of a condition `any(rows)` or `not all(rows)`, or of a conjunction with one of these."""
    test = loop.cond.block.last_op
    assert test is not None
    pending = [*test.operands]
    while pending:
        op = pending.pop().owner
        if isinstance(op, AndOp):
            pending += op.operands
        is_negated = isinstance(op, NotOp)
        combined = op.operand.owner if isinstance(op, NotOp) else op
        rows = _reduced_rows(combined, "min" if is_negated else "max")
        if rows is not None:
            return _Ending(rows, is_negated)
    return None


def _reduced_rows(op: object, kind: str) -> SSAValue | None:
    """Return the booleans that an all-reduce and the reduction before it reduce to one, if both have this kind."""
    if not isinstance(op, AllReduceOp) or op.reduction != kind or op.tensor.type != _CONDITION:
        return None
    reduction = op.tensor.owner
    if not isinstance(reduction, ReduceOp) or len(reduction.inputs) != 1 or region_reduction(reduction.body) != kind:
        return None
    return reduction.inputs[0]


def _obstacles(loop: WhileOp, ending: _Ending, numbers: ValueNumbers, at_end: Mapping[Hashable, bool]) -> Iterator[str]:
    """Yield the reasons why a device may not leave the loop once its own rows have ended."""
    communicating = [op for each in loop.cond.block.ops for op in operations(each) if isinstance(op, CollectiveOp)]
    if len(communicating) > 1:
        yield "its condition communicates more than one boolean"
    fixed = _fixed(loop, ending, numbers, at_end)
    for index in sorted(arguments_behind([ending.rows], loop.cond.block) - fixed):
        yield f"carried value {index}, on which the end of the rows depends, changes after it"
    for result in loop.results:
        if result.first_use is not None and result.index not in fixed:
            yield f"carried value {result.index}, which is read after the loop, changes after the end of the rows"


def _fixed(loop: WhileOp, ending: _Ending, numbers: ValueNumbers, at_end: Mapping[Hashable, bool]) -> set[int]:
    """Return the numbers of the carried values that an iteration does not change in rows that have ended."""
    sharding = get_sharding(ending.rows)
    body = loop.body.block
    known: dict[SSAValue, bool | None] = {}
    origins: dict[SSAValue, SSAValue] = {}
    """By value, the value that it is equal to in rows that have ended."""

    def visit(value: SSAValue, otherwise: bool | None) -> None:
        fact = at_end.get(numbers.number_of(value))
        # Of other shardings, a device may have rows that it does not reduce.
        known[value] = fact if fact is not None and equivalent(get_sharding(value), sharding) else otherwise

    for argument in body.args:
        visit(argument, None)
    for op in body.ops:
        if len(op.results) == 1:
            visit(op.results[0], _boolean(op, known))
            if isinstance(op, SelectOp) and (picks := known.get(op.pred)) is not None:
                picked = op.on_true if picks else op.on_false
                origins[op.results[0]] = origins.get(picked, picked)
    assert body.last_op is not None
    return {
        argument.index
        for argument, returned in zip(body.args, body.last_op.operands, strict=True)
        if origins.get(returned, returned) is argument
        or (known.get(returned) is not None and known.get(returned) == known[argument])
    }


def _at_end(loop: WhileOp, ending: _Ending, numbers: ValueNumbers, elements: RowElements) -> Mapping[Hashable, bool]:
    """Return the element that a boolean tensor has in all rows that have ended, by value number."""
    sharding = get_sharding(ending.rows)
    carried = [] if ending.at_end else false_at_end(loop, ending.rows, elements)
    known = {numbers.number_of(each): False for each in carried}
    pending: list[tuple[SSAValue, bool]] = [ending]
    while pending:
        value, element = pending.pop()
        known[numbers.number_of(value)] = element
        op = value.owner
        if isinstance(op, NotOp):
            pending.append((op.operand, not element))
        elif isinstance(op, AndOp if element else OrOp):
            pending += [(operand, element) for operand in op.operands if equivalent(get_sharding(operand), sharding)]
    return known


def _boolean(op: Operation, known: dict[SSAValue, bool | None]) -> bool | None:
    """Return the boolean that all elements of the result have, given those of the operands."""
    result = op.results[0]
    if type(result.type) is not TensorType or tensor_type(result).element_type != i1:
        return None
    if (number := constant_number(result)) is not None:
        return bool(number)
    follows = _FOLLOWS.get(type(op))
    return None if follows is None else follows(*(known.get(operand) for operand in op.operands))


def _dominated(element: bool) -> Callable[[bool | None, bool | None], bool | None]:
    """Return the function of two booleans that is `element` if one of them is."""

    def follows(left: bool | None, right: bool | None) -> bool | None:
        if element in (left, right):
            return element
        return None if None in (left, right) else not element

    return follows


def _equal(element: bool | None) -> bool | None:
    return element


def _negated(element: bool | None) -> bool | None:
    return None if element is None else not element


_FOLLOWS: dict[type[Operation], Callable[..., bool | None]] = {
    AndOp: _dominated(False),
    OrOp: _dominated(True),
    NotOp: _negated,
    BroadcastInDimOp: _equal,
    ReshapeOp: _equal,
    ConvertOp: _equal,
}
"""The boolean that all elements of a result have, given those of the operands, or None if they may differ."""
