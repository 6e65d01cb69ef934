"""Communication that can run beside computation in any layout, since no product waits for it.

A reshard of a value that no product computes, such as a parameter that is gathered, runs beside the computation before
its user. A reduction of a value that no product uses, such as the gradient of a parameter, runs beside the computation
behind it. Collectives between two products are exposed, as are the first gathers, which have little computation before
them, and the last reductions, which have little behind them. The estimates of the search use this; `schedule` simulates
the partitioned program.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence, Set

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue, Use

from sdy.dialect.ops import DataFlowEdgeOp
from sdy.ir.fast_access import is_terminator
from sdy.ir.shapes import shape_of
from sdy.ir.walking import operations
from sdy.passes.common.loops import carried_unchanged
from sdy.passes.spmd.costs.arithmetic import arithmetic_of
from sdy.passes.spmd.costs.hardware import VECTOR
from sdy.stablehlo import WhileOp

Spread = tuple[tuple[int, int], float]
"""The first and the last position of equal operations in a program, and the seconds that all of them take."""


Floats = npt.NDArray[np.float64]


class Spreads:
    """Equal operations that are spread evenly over a program.

    Args:
        spans: The first and the last position of each.
    """

    def __init__(self, spans: Sequence[tuple[int, int]]) -> None:
        spans_ = np.array(spans, np.int64).reshape(-1, 2)
        self._begins, self._ends = spans_[:, 0], spans_[:, 1] + 1

    def by_position(self, seconds: Floats) -> Floats:
        """Return the seconds at each position, given those of each class of equal operations."""
        length = int(self._ends.max(initial=0)) + 1
        rates = seconds / (self._ends - self._begins)
        return (np.bincount(self._begins, rates, length) - np.bincount(self._ends, rates, length)).cumsum()[:-1]


def exposed_seconds(collectives: Sequence[Spread], computed: Floats, *, ahead: bool) -> float:
    """Return the seconds of collectives that find no computation to run beside.

    Up to each position, gathers that run ahead take at most as long as the computation before it, and the rest is
    exposed; equally for reductions and the computation behind.

    Args:
        collectives: The collectives.
        computed: The seconds of computation at each position of the program.
        ahead: True if they run ahead, else behind.
    """
    moved = Spreads([span for span, _ in collectives]).by_position(np.array([seconds for _, seconds in collectives]))
    length = max(len(moved), len(computed))
    moved, computed = (np.pad(each, (0, length - len(each)))[:: 1 if ahead else -1] for each in (moved, computed))
    return float((moved.cumsum() - (computed.cumsum() - computed)).max(initial=0.0))


class Overlap:
    """Dependences of the values of a module on products."""

    def __init__(self, module: ModuleOp) -> None:
        products = [op for op in operations(module) if _is_product(op)]
        results = [result for op in products for result in op.results]
        self._late = _closure([*results, *_computed_in_regions(module)], _next)
        """The values that wait for a product."""
        self._early = _closure([operand for op in products for operand in op.operands], _previous)
        """The values that a product waits for."""

    def runs_ahead(self, op: Operation, operand: int) -> bool:
        """Return whether a reshard of an operand of `op`, which waits for no product, runs beside what is before it."""
        return op.operands[operand] not in self._late

    def runs_behind(self, op: Operation) -> bool:
        """Return whether a reduction of the results of `op` runs beside the computation behind it: no product waits."""
        return self._early.isdisjoint(op.results)


def _closure(values: Iterable[SSAValue], neighbors: Callable[[SSAValue], Iterable[SSAValue]]) -> Set[SSAValue]:
    """Return the values that are reached from `values`."""
    reached, pending = set[SSAValue](), [*values]
    while pending:
        value = pending.pop()
        if value not in reached:
            reached.add(value)
            pending += neighbors(value)
    return reached


def _next(value: SSAValue) -> Iterator[SSAValue]:
    """Yield the values that are computed from `value`."""
    for use in value.uses:
        yield from _dependents(use)


def _dependents(use: Use) -> Sequence[SSAValue]:
    """Return the values that are computed from an operand."""
    op = use.operation
    if is_terminator(op):
        loop = op.parent_op()
        return _carried(loop, use.index) if isinstance(loop, WhileOp) and op.parent is loop.body.block else ()
    return _carried(op, use.index) if isinstance(op, WhileOp) else op.results


def _carried(loop: WhileOp, index: int) -> Sequence[SSAValue]:
    return loop.body.block.args[index], loop.results[index]


def _previous(value: SSAValue) -> Iterable[SSAValue]:
    """Return the values from which `value` is computed."""
    assert isinstance(value, OpResult | BlockArgument)
    op = value.op if isinstance(value, OpResult) else value.block.parent_op()
    if isinstance(op, WhileOp):
        end = op.body.block.last_op
        return op.operands[value.index], *([end.operands[value.index]] if end is not None else ())
    return value.op.operands if isinstance(value, OpResult) else ()


def _computed_in_regions(module: ModuleOp) -> Iterator[SSAValue]:
    """Yield the arguments of regions that are computed beside products: a loop computes its carried tensors."""
    for op in operations(module):
        for region in op.regions if not isinstance(op, FuncOp) else ():
            unchanged = carried_unchanged(op) if isinstance(op, WhileOp) else {}
            for value in region.blocks.first.args if region.blocks.first else ():
                if value not in unchanged and (shape_of(value) or not isinstance(op, WhileOp)):
                    yield value


def _is_product(op: Operation) -> bool:
    if isinstance(op, DataFlowEdgeOp):
        return False
    work = arithmetic_of(op)
    return work.operations > 0 and work.element_type != VECTOR
