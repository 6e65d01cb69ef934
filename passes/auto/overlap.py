"""Communication that can run beside computation in any layout, since no product waits for it.

A reshard of a value that no product computes, such as a parameter that is gathered, runs beside the products that its
user waits for. A reduction of a value that no product uses, such as the gradient of a parameter, runs beside the
products that use the same values. Collectives between two products are exposed, as are the first gathers, which have
little computation before them, and the last reductions, which have little behind them. The estimates of the search use
this; `schedule` simulates the partitioned program.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from sdy.dialect.ops import DataFlowEdgeOp
from sdy.ir.fast_access import is_terminator
from sdy.ir.shapes import shape_of
from sdy.passes.common.loops import carried_unchanged
from sdy.passes.spmd.costs.arithmetic import arithmetic_of
from sdy.passes.spmd.costs.hardware import VECTOR
from sdy.stablehlo import WhileOp

Spread = tuple[tuple[int, int], float]
"""The first and the last position of equal operations in a program, and the seconds that all of them take."""


def exposed_seconds(collectives: Sequence[Spread], computation: Sequence[Spread], *, ahead: bool) -> float:
    """Return the seconds of collectives that find no computation to run beside.

    Up to each position, gathers that run ahead take at most as long as the computation before it, and the rest is
    exposed; equally for reductions and the computation behind. Equal operations are spread evenly.
    """
    length = 1 + max([last for (_, last), _ in (*collectives, *computation)], default=0)
    moved, computed = (_by_position(each, length)[:: 1 if ahead else -1] for each in (collectives, computation))
    return float((moved.cumsum() - (computed.cumsum() - computed)).max(initial=0.0))


def _by_position(spreads: Sequence[Spread], length: int) -> npt.NDArray[np.float64]:
    begins = [first for (first, _), _ in spreads]
    ends = [last + 1 for (_, last), _ in spreads]
    rates = [seconds / (last + 1 - first) for (first, last), seconds in spreads]
    changes = np.bincount(begins, rates, length + 1) - np.bincount(ends, rates, length + 1)
    return changes.cumsum()[:length]


class Overlap:
    """Memoized dependences of the values of a module on products."""

    def __init__(self) -> None:
        self._follows: dict[SSAValue, bool] = {}
        self._precedes: dict[SSAValue, bool] = {}

    def runs_ahead(self, op: Operation, operand: int) -> bool:
        """Return whether a reshard of an operand of `op` runs beside products that another operand waits for."""
        if self.follows_product(op.operands[operand]):
            return False
        return any(self.follows_product(value) for index, value in enumerate(op.operands) if index != operand)

    def runs_behind(self, op: Operation) -> bool:
        """Return whether a reduction of the results of `op` runs beside products of the same operands."""
        if any(map(self.precedes_product, op.results)):
            return False
        late = [value for value in op.operands if self.follows_product(value)]
        return any(
            use.operation is not op and self._reaches_product(use.operation, use.index)
            for value in late
            for use in value.uses
        )

    def follows_product(self, value: SSAValue) -> bool:
        """Return whether a product must run before `value` is there."""
        if value not in self._follows:
            self._follows[value] = False  # a cycle through a loop does not add products
            self._follows[value] = self._is_late(value)
        return self._follows[value]

    def precedes_product(self, value: SSAValue) -> bool:
        """Return whether a product waits for `value`."""
        if value not in self._precedes:
            self._precedes[value] = False
            self._precedes[value] = any(self._reaches_product(use.operation, use.index) for use in value.uses)
        return self._precedes[value]

    def _is_late(self, value: SSAValue) -> bool:
        owner = value.owner
        if isinstance(owner, Operation):
            return _is_product(owner) or any(map(self.follows_product, owner.operands))
        loop = owner.parent_op()
        if not isinstance(loop, WhileOp):
            return not isinstance(loop, FuncOp)
        # A loop computes its carried values in each iteration, beside its counter.
        initial = carried_unchanged(loop).get(value)
        return bool(shape_of(value)) if initial is None else self.follows_product(initial)

    def _reaches_product(self, op: Operation, index: int) -> bool:
        if _is_product(op):
            return True
        if isinstance(op, WhileOp):
            return self.precedes_product(op.body.block.args[index]) or self.precedes_product(op.results[index])
        if is_terminator(op):
            loop = op.parent_op()
            return isinstance(loop, WhileOp) and op.parent is loop.body.block and self._reaches_product(loop, index)
        return any(map(self.precedes_product, op.results))


def _is_product(op: Operation) -> bool:
    if isinstance(op, DataFlowEdgeOp):
        return False
    work = arithmetic_of(op)
    return work.operations > 0 and work.element_type != VECTOR
