"""The bytes that a device receives in a run of a partitioned program, told from the program alone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp
from xdsl.ir import Operation

from sdy.dialect.meshes import device_count
from sdy.interpreter.grid import Grid
from sdy.interpreter.groups import groups_of
from sdy.passes.common.call_graph import callee, main_function
from sdy.passes.common.loops import loop_trips
from sdy.passes.common.symbols import Symbols
from sdy.passes.spmd.costs.sizes import value_bytes
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


@dataclass(frozen=True, slots=True)
class CollectiveBytes:
    """What one device receives on average in a collective, which runs so many `times`, in bytes of all of them."""

    collective: Operation
    times: int
    bytes: float


def bytes_received(module: ModuleOp) -> float:
    """What one device of the partitioned `module` receives on average in all collectives of a run, in bytes."""
    return _total(received(module))


def received(module: ModuleOp) -> list[CollectiveBytes]:
    """What one device of the partitioned `module` receives in each collective of a run, those of a call at each call.

    A loop counts as often as it is known to run, or once; of branches, the one that receives most.
    """
    return _Walk(module).operation(main_function(module))


def _total(collectives: Sequence[CollectiveBytes]) -> float:
    return sum(each.bytes for each in collectives)


class _Walk:
    def __init__(self, module: ModuleOp):
        self._symbols = Symbols(module)
        self._grid = Grid(1, device_count(module))
        self._bytes_of: dict[type[Operation], Callable[[Any], float]] = {
            AllGatherOp: partial(self._grouped, 1.0),
            AllToAllOp: partial(self._grouped, 1.0),
            AllReduceOp: partial(self._grouped, 2.0),
            ReduceScatterOp: self._reduce_scatter,
            CollectivePermuteOp: self._permute,
        }
        self._inside_of: dict[type[Operation], Callable[[Any], list[CollectiveBytes]]] = {
            WhileOp: self._loop,
            CaseOp: self._branches,
            IfOp: self._branches,
            CallOp: self._call,
        }

    def operation(self, op: Operation) -> list[CollectiveBytes]:
        """What is received in `op`, or in what is inside of it."""
        if count := self._bytes_of.get(type(op)):
            return [CollectiveBytes(op, 1, count(op))]
        inside = self._inside_of.get(type(op), self._regions)
        return inside(op)

    def _regions(self, op: Operation) -> list[CollectiveBytes]:
        return [each for number in range(len(op.regions)) for each in self._region(number, op)]

    def _region(self, number: int, op: Operation) -> list[CollectiveBytes]:
        return [each for block in op.regions[number].blocks for inner in block.ops for each in self.operation(inner)]

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

    def _loop(self, op: WhileOp) -> list[CollectiveBytes]:
        known = loop_trips(op)
        trips = 1 if known is None else known
        return [
            replace(each, times=trips * each.times, bytes=trips * each.bytes) for each in self._regions(op) if trips
        ]

    def _branches(self, op: CaseOp | IfOp) -> list[CollectiveBytes]:
        return max((self._region(number, op) for number in range(len(op.regions))), key=_total)

    def _call(self, op: CallOp) -> list[CollectiveBytes]:
        return self.operation(callee(op, self._symbols))

    def _group_size(self, op: Operation) -> int:
        return max(map(len, groups_of(op, self._grid)))
