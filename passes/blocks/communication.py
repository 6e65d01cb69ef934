"""The bytes that a device receives in a run of a partitioned program, told from the program alone."""

from collections.abc import Callable
from functools import partial
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp
from xdsl.ir import Operation

from sdy.dialect.meshes import device_count
from sdy.passes.blocks.sizes import loop_trips, value_bytes
from sdy.passes.common.call_graph import callee, main_function
from sdy.passes.common.symbols import Symbols
from sdy.passes.execution.interpreter.grid import Grid
from sdy.passes.execution.interpreter.groups import groups_of
from sdy.stablehlo import (
    AllGatherOp,
    AllReduceOp,
    AllToAllOp,
    CaseOp,
    CollectivePermuteOp,
    IfOp,
    ReduceScatterOp,
    WhileOp,
)


def bytes_received(module: ModuleOp) -> float:
    """What one device of the partitioned `module` receives on average in all collectives of a run.

    A loop counts as often as it is known to run, or once; of branches, the one that receives most.
    """
    return _Account(module).operation(main_function(module))


class _Account:
    def __init__(self, module: ModuleOp):
        self._symbols = Symbols(module)
        self._grid = Grid(1, device_count(module))
        self._of_operation: dict[type[Operation], Callable[[Any], float]] = {
            AllGatherOp: partial(self._grouped, 1.0),
            AllToAllOp: partial(self._grouped, 1.0),
            AllReduceOp: partial(self._grouped, 2.0),
            ReduceScatterOp: self._reduce_scatter,
            CollectivePermuteOp: self._permute,
            WhileOp: self._loop,
            CaseOp: self._branches,
            IfOp: self._branches,
            CallOp: self._call,
        }

    def operation(self, op: Operation) -> float:
        """What is received in `op`, or in what is inside of it."""
        found = self._of_operation.get(type(op))
        return found(op) if found else sum(map(self._region, range(len(op.regions)), [op] * len(op.regions)))

    def _region(self, number: int, op: Operation) -> float:
        return sum(self.operation(inner) for block in op.regions[number].blocks for inner in block.ops)

    def _grouped(self, times: float, op: AllGatherOp | AllToAllOp | AllReduceOp) -> float:
        """In a group of n a device receives n - 1 of n parts of the result, and in an all-reduce twice that."""
        size = self._group_size(op)
        return times * sum(map(value_bytes, op.results)) * (size - 1) / size

    def _reduce_scatter(self, op: ReduceScatterOp) -> float:
        return value_bytes(op.results[0]) * (self._group_size(op) - 1)

    def _permute(self, op: CollectivePermuteOp) -> float:
        pairs = op.source_target_pairs.get_values()
        moved = sum(source != target for source, target in zip(pairs[::2], pairs[1::2], strict=True))
        return sum(map(value_bytes, op.results)) * moved / self._grid.partitions

    def _loop(self, op: WhileOp) -> float:
        trips = loop_trips(op)
        return (1 if trips is None else trips) * (self._region(0, op) + self._region(1, op))

    def _branches(self, op: CaseOp | IfOp) -> float:
        return max(self._region(number, op) for number in range(len(op.regions)))

    def _call(self, op: CallOp) -> float:
        return self.operation(callee(op, self._symbols))

    def _group_size(self, op: Operation) -> int:
        return max(map(len, groups_of(op, self._grid)))
