"""`sdy-sum-after-loops`: one all-reduce after a loop that accumulates or stacks the results of all-reduces."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from sdy.dialect.constants import constant_number
from sdy.ir.editing import insert, replace
from sdy.ir.walking import innermost_first, operations_of
from sdy.passes.common.known_scalars import is_foldable
from sdy.passes.common.loops import carried_unchanged, loop_counters, loop_trips
from sdy.passes.common.properties import num_bytes, uniform_number
from sdy.passes.communication.partial_sums import is_linear, reduction_behind
from sdy.passes.communication.predicted_gain import UnlessSlowerPass
from sdy.passes.spmd.emit.communication import reducer
from sdy.stablehlo.control_flow import WhileOp
from sdy.stablehlo.elementwise import AddOp
from sdy.stablehlo.reducing_collectives import AllReduceOp
from sdy.stablehlo.slicing import DynamicUpdateSliceOp


class SumAfterLoopsPass(UnlessSlowerPass):
    """Accumulate or stack partial sums in a loop, and sum them over devices once after it.

    The gradients of microbatches are accumulated so, and the losses of their steps are stacked: each is a part of a
    tensor that iterations write and none reads. Before, with four iterations::

        %0:2 = stablehlo.while(%i = %zero, %total = %zeros) : tensor<i32>, tensor<8xf32>
          ...
          %1 = "stablehlo.all_reduce"(%gradient) ({add}) : (tensor<8xf32>) -> tensor<8xf32>
          %2 = stablehlo.add %total, %1 : tensor<8xf32>
          stablehlo.return %next, %2 : tensor<i32>, tensor<8xf32>

    After::

        %0:2 = stablehlo.while(%i = %zero, %total = %zeros) : tensor<i32>, tensor<8xf32>
          ...
          %2 = stablehlo.add %total, %gradient : tensor<8xf32>
          stablehlo.return %next, %2 : tensor<i32>, tensor<8xf32>
        %3 = "stablehlo.all_reduce"(%0#1) ({add}) : (tensor<8xf32>) -> tensor<8xf32>

    Operations that commute with the all-reduce may be between it and the addition, as for `sdy-reduce-sums-once`.
    Accumulated floats are rounded in another order. Unchanged are sums that an iteration reads otherwise, or that begin
    with other numbers than zeros, all-reduces with further uses or in branches, parts whose place is more than a
    function of the iteration, as devices may write to different places, and loops of fewer than two or an unknown
    number of iterations: devices may leave those at different times.

    In a loop, an all-reduce can run beside computation: with `hardware`, a preset or a file, or by default the module's
    attribute `sdy.hardware`, nothing is moved if the step then takes longer, as predicted.
    """

    name = "sdy-sum-after-loops"

    def change(self, module: ModuleOp) -> None:
        for loop in innermost_first(operations_of(module, WhileOp)):
            trips = loop_trips(loop) or 0
            for sum_ in [*_sums(loop)] if trips > 1 else ():
                if trips * sum_.bytes_in_loop >= num_bytes(sum_.total.type):
                    sum_.move()


@dataclass(frozen=True)
class _Sum:
    """A result of a loop that accumulates or stacks the results of an all-reduce in the loop."""

    total: SSAValue
    reduction: AllReduceOp

    @property
    def bytes_in_loop(self) -> int:
        """The bytes of the all-reduce in an iteration."""
        return num_bytes(self.reduction.operands[0].type)

    def move(self) -> None:
        """Move the all-reduce behind the loop."""
        total, reduction, loop = self.total, self.reduction, self.total.owner
        assert isinstance(loop, WhileOp)
        uses = [*total.uses]
        moved = AllReduceOp.create(
            operands=[total],
            result_types=[total.type],
            properties=reduction.properties,
            attributes=reduction.attributes,
            regions=[reducer(total, "sum")],
        )
        moved.location = reduction.location
        insert(moved, InsertPoint.after(loop))
        for use in uses:
            use.operation.operands[use.index] = moved.results[0]
        replace(reduction, reduction.operands)


def _sums(loop: WhileOp) -> Iterator[_Sum]:
    end = loop.body.block.last_op
    assert end is not None
    for index, (begin, argument, returned) in enumerate(
        zip(loop.operands, loop.body.block.args, end.operands, strict=True)
    ):
        is_read = not argument.has_one_use() or loop.cond.block.args[index].first_use is not None
        if is_read or not returned.has_one_use() or uniform_number(_before_loops(begin)) != 0:
            continue
        added = _added(loop, argument, returned)
        reduction = reduction_behind(added) if added is not None and is_linear(added) else None
        if reduction is not None and reduction.parent is loop.body.block:
            yield _Sum(loop.results[index], reduction)


def _added(loop: WhileOp, before: SSAValue, after: SSAValue) -> SSAValue | None:
    """Return the value that the body adds to a carried one, or writes to a part of it; None if it does neither."""
    op = after.owner
    if not isinstance(op, Operation) or op.parent is not loop.body.block:
        return None
    if isinstance(op, AddOp):
        others = [operand for operand in op.operands if operand is not before]
        return others[0] if len(others) == 1 else None
    if isinstance(op, DynamicUpdateSliceOp) and op.operand is before and _is_of_iteration(op.start_indices, loop):
        return op.update
    return None


def _is_of_iteration(indices: Sequence[SSAValue], loop: WhileOp) -> bool:
    """Return whether scalars are computed from constants and the counters of a loop alone: equal on all devices."""
    pending, seen = [*indices], loop_counters(loop)
    while pending:
        value = pending.pop()
        if value in seen or constant_number(value) is not None:
            continue
        seen.add(value)
        if not isinstance(value.owner, Operation) or not is_foldable(value.owner):
            return False
        pending += value.owner.operands
    return True


def _before_loops(value: SSAValue) -> SSAValue:
    """Return the initial value of a value that the loops around it carry unchanged."""
    while isinstance(value.owner, Block) and isinstance(loop := value.owner.parent_op(), WhileOp):
        initial = carried_unchanged(loop).get(value)
        if initial is None:
            return value
        value = initial
    return value
