"""`sdy-sum-after-loops`: one all-reduce after a loop that accumulates the results of all-reduces."""

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue
from xdsl.rewriter import InsertPoint

from sdy.ir.editing import insert, replace
from sdy.ir.walking import innermost_first, operations_of
from sdy.passes.common.loops import carried_unchanged, loop_trips
from sdy.passes.common.properties import num_bytes, uniform_number
from sdy.passes.communication.partial_sums import is_linear, reduction_behind
from sdy.passes.communication.predicted_gain import UnlessSlowerPass
from sdy.passes.spmd.emit.communication import reducer
from sdy.stablehlo.control_flow import WhileOp
from sdy.stablehlo.elementwise import AddOp
from sdy.stablehlo.reducing_collectives import AllReduceOp


class SumAfterLoopsPass(UnlessSlowerPass):
    """Accumulate partial sums in a loop, and sum them over devices once after it.

    The gradients of microbatches are accumulated so. Before, with four iterations::

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
    Floats are rounded in another order. Unchanged are sums that an iteration reads otherwise, or that begin with other
    numbers than zeros, all-reduces with further uses or in branches, and loops of fewer than two or an unknown number
    of iterations: devices may leave those at different times.

    In a loop, an all-reduce can run beside computation: with `hardware`, a preset or a file, or by default the module's
    attribute `sdy.hardware`, nothing is moved if the step then takes longer, as predicted.
    """

    name = "sdy-sum-after-loops"

    def change(self, module: ModuleOp) -> None:
        for loop in innermost_first(operations_of(module, WhileOp)):
            trips = loop_trips(loop) or 0
            for sum_ in [*_accumulated(loop)] if trips > 1 else ():
                if trips * sum_.bytes_in_loop > num_bytes(sum_.total.type):
                    sum_.move()


@dataclass(frozen=True)
class _Accumulated:
    """A result of a loop that accumulates the results of an all-reduce in the loop."""

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


def _accumulated(loop: WhileOp) -> Iterator[_Accumulated]:
    end = loop.body.block.last_op
    assert end is not None
    for index, (begin, argument, returned) in enumerate(
        zip(loop.operands, loop.body.block.args, end.operands, strict=True)
    ):
        add = returned.owner
        if not isinstance(add, AddOp) or add.parent is not loop.body.block or not add.result.has_one_use():
            continue
        others = [operand for operand in add.operands if operand is not argument]
        is_read = not argument.has_one_use() or loop.cond.block.args[index].first_use is not None
        if len(others) != 1 or is_read or uniform_number(_before_loops(begin)) != 0 or not is_linear(add.result):
            continue
        reduction = reduction_behind(others[0])
        if reduction is not None and reduction.parent is loop.body.block:
            yield _Accumulated(loop.results[index], reduction)


def _before_loops(value: SSAValue) -> SSAValue:
    """Return the initial value of a value that the loops around it carry unchanged."""
    while isinstance(value.owner, Block) and isinstance(loop := value.owner.parent_op(), WhileOp):
        initial = carried_unchanged(loop).get(value)
        if initial is None:
            return value
        value = initial
    return value
