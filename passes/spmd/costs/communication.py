"""Static estimate of the bytes that a device receives through collectives in one run of a partitioned program."""

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
from sdy.passes.common.properties import value_bytes
from sdy.passes.common.symbols import Symbols
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
    """Communication volume of one collective."""

    collective: Operation
    times: int
    """Executions in one run of the program."""
    bytes: float
    """Bytes received by one device, averaged over the devices and summed over all executions."""
    devices: int = 0
    """Devices in a replica group; 0 for a permute, which has pairs."""


def bytes_received(module: ModuleOp) -> float:
    """Return the bytes that a device receives, on average, in all collectives of a run of the partitioned `module`."""
    return _total(received(module))


def received(module: ModuleOp) -> list[CollectiveBytes]:
    """Return the communication volume of each collective in a run of the partitioned `module`.

    A collective in a called function is listed once per call. The body of a loop counts once per iteration, or once if
    the trip count is unknown. Of several branches, the one that receives the most bytes counts.
    """
    return _Walk(module).operation(main_function(module))


def received_in_group(bytes_: int, devices: int) -> float:
    """Return the bytes that a device receives in an all-gather or all-to-all, given the bytes of its result."""
    return bytes_ * (devices - 1) / devices


def received_in_permute(bytes_: int, moved: int, devices: int) -> float:
    """Return the bytes that a device receives in a permute that moves `moved` shards, on average."""
    return bytes_ * moved / devices


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
        """Return the collectives executed by `op`, nested ones included."""
        if count := self._bytes_of.get(type(op)):
            devices = 0 if isinstance(op, CollectivePermuteOp) else self._group_size(op)
            return [CollectiveBytes(op, 1, count(op), devices)]
        inside = self._inside_of.get(type(op), self._regions)
        return inside(op)

    def _regions(self, op: Operation) -> list[CollectiveBytes]:
        return [each for number in range(len(op.regions)) for each in self._region(number, op)]

    def _region(self, number: int, op: Operation) -> list[CollectiveBytes]:
        return [each for block in op.regions[number].blocks for inner in block.ops for each in self.operation(inner)]

    def _grouped(self, times: float, op: AllGatherOp | AllToAllOp | AllReduceOp) -> float:
        """Return the bytes received in a group, twice as many for an all-reduce."""
        return times * received_in_group(sum(map(value_bytes, op.results)), self._group_size(op))

    def _reduce_scatter(self, op: ReduceScatterOp) -> float:
        return value_bytes(op.results[0]) * (self._group_size(op) - 1)

    def _permute(self, op: CollectivePermuteOp) -> float:
        pairs = op.source_target_pairs.get_values()
        moved = sum(source != target for source, target in zip(pairs[::2], pairs[1::2], strict=True))
        return received_in_permute(sum(map(value_bytes, op.results)), moved, self._grid.partitions)

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
