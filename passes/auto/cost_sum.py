"""Sum of the costs of a program's operations in one layout.

Compute times are arrays over the operations, as most operations only compute. Operations that communicate or need
temporaries are added one by one: users that require the same sharding of a value share its reshard, as after
`sdy-merge-equal-collectives`.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from sdy.passes.auto.folded_program import FoldedOperation
from sdy.passes.auto.loop_cycles import Place, hidden_in_loops
from sdy.passes.auto.operation_cost import OperationCost
from sdy.passes.auto.overlap import Floats, Spread, Spreads, exposed_seconds
from sdy.passes.auto.planned_reshard import OperandReshard, Seconds
from sdy.passes.spmd.costs.network import AxisNames
from sdy.passes.spmd.costs.step_time import StepCost


@dataclass(frozen=True, slots=True, eq=False)
class GroupCost:
    """Cost of a group of equal operations with the same shardings."""

    operation: FoldedOperation
    rows: slice
    """The times at which they run."""
    cost: OperationCost
    """The cost of each operation."""
    compute: float
    """The compute seconds of all operations."""
    is_local: bool
    """True if they neither communicate nor need temporaries, as most operations."""
    ahead: tuple[bool, ...]
    """For each reshard of an operand, true if it can run beside products."""
    is_behind: bool
    """True if their communication can run beside products that follow."""
    place: Place | None
    """The place of the operations in a loop."""
    places: tuple[Place | None, ...]
    """For each reshard of an operand, its place in a loop."""


class Computation:
    """Compute seconds of each operation of a program.

    Args:
        operations: The operations.
        places: The place of each operation in a loop.
    """

    def __init__(self, operations: Sequence[FoldedOperation], places: Sequence[Place | None]) -> None:
        self.seconds = np.zeros(len(operations))
        """The seconds of each operation in the present layout, 0 where they are unknown."""
        self._places = [*{place: None for place in places if place is not None}]
        number_of = {place: number for number, place in enumerate(self._places)}
        self._inside = np.array([index for index, place in enumerate(places) if place is not None], np.int64)
        self._outside = np.array([index for index, place in enumerate(places) if place is None], np.int64)
        self._place_numbers = np.array([number_of[place] for place in places if place is not None], np.int64)
        self._spreads = Spreads([each.span for each, place in zip(operations, places, strict=True) if place is None])

    def by_position(self) -> Floats:
        """Return the seconds at each position of the program, outside of loops."""
        return self._spreads.by_position(self.seconds[self._outside])

    def in_loops(self) -> Iterable[tuple[Place, float]]:
        """Return the seconds at each place in loops."""
        seconds = np.bincount(self._place_numbers, self.seconds[self._inside], len(self._places))
        return zip(self._places, seconds.tolist(), strict=True)


class CostSum:
    """Accumulator for the cost of a step.

    Args:
        computation: The compute seconds of the operations.
        least: A lower bound of the seconds of the operations whose costs are unknown.
        memory: The bytes of all live values at each time, without temporaries of operations and reshards of operands.
        is_asynchronous: True if communication runs beside computation.
    """

    def __init__(self, computation: Computation, least: float, memory: Floats, is_asynchronous: bool) -> None:
        self._computation = computation
        self._least = least
        self._memory = memory
        self._is_asynchronous = is_asynchronous
        self._ahead: set[tuple[int, tuple[str, ...]]] = set()
        """The reshards that can run beside products, as keys of `_reshards`."""
        self._behind: list[Spread] = []
        """The communication that can run beside products that follow it."""
        self._in_loops: list[tuple[Place, Seconds]] = []
        """The seconds of communication by axes of operations in loops."""
        self._received = 0.0
        """The bytes that a device receives."""
        self._communication: dict[AxisNames, float] = defaultdict(float)
        self._scratch: dict[GroupCost, int] = {}
        """The temporaries of operations that communicate."""
        self._reshards: dict[tuple[int, tuple[str, ...]], list[tuple[GroupCost, OperandReshard]]] = defaultdict(list)

    def add(self, each: GroupCost) -> None:
        """Add the communication and the temporaries of equal operations."""
        times, cost = each.operation.times, each.cost
        if each.place is not None:
            self._in_loops.append((each.place, scaled(times, cost.communication)))
        behind = each.operation.span if each.is_behind and each.place is None else None
        self.send(times, cost.communication, cost.received, behind)
        self._scratch[each] = cost.scratch
        for reshard, is_ahead, place in zip(cost.reshards, each.ahead, each.places, strict=True):
            key = each.operation.nodes[reshard.operand], reshard.steps
            if key not in self._reshards:
                if place is not None:
                    self._in_loops.append((place, scaled(times, reshard.communication)))
                elif is_ahead:
                    self._ahead.add(key)
            self._reshards[key].append((each, reshard))

    def send(self, times: int, seconds: Seconds, received: float, behind: tuple[int, int] | None) -> None:
        """Add the communication of `times` runs; in each, a device receives `received` bytes.

        It can run beside products that follow `behind`, the first and the last position of its operations, if given.
        """
        self._received += times * received
        for axes, each in seconds.items():
            self._communication[axes] += times * each
        if behind is not None:
            self._behind.append((behind, times * sum(seconds.values())))

    def cost(self) -> StepCost:
        """Return the cost of the added operations, plus the lower bound of the others."""
        communication, received = self._communication.copy(), self._received
        ahead: list[Spread] = []
        for key, users in self._reshards.items():
            times = max(user.operation.times for user, _ in users)
            received += times * users[0][1].received
            for axes, each in users[0][1].communication.items():
                communication[axes] += times * each
            if key in self._ahead:
                ahead.append((users[0][0].operation.span, times * sum(users[0][1].communication.values())))
        compute = float(self._computation.seconds.sum()) + self._least
        overlap = self._hidden(ahead, compute) if self._is_asynchronous else 0.0
        return StepCost(compute, dict(communication), self._peak_memory(), overlap=overlap, received=received)

    def _hidden(self, ahead: Sequence[Spread], compute: float) -> float:
        """Return the seconds of communication that run beside computation: all that could if some costs are unknown."""
        outside = sum([seconds for _, seconds in (*ahead, *self._behind)])
        if self._least:
            in_loops = sum([sum(seconds.values()) for _, seconds in self._in_loops])
            return min(outside, compute) + in_loops
        if outside:
            computed = self._computation.by_position()
            outside -= exposed_seconds(ahead, computed, ahead=True)
            outside -= exposed_seconds(self._behind, computed, ahead=False)
        return min(outside, compute) + hidden_in_loops(self._computation.in_loops(), self._in_loops)

    def _peak_memory(self) -> int:
        """Return the peak memory in bytes, including temporaries of operations and resharded copies of values.

        A copy with several users is live from the first to the last. If a user in the forward pass and one in the
        backward pass share it, the copies of all layers are live at the same time. A copy with one user is live only
        for that user.
        """
        memory, while_running = self._memory.copy(), self._scratch.copy()
        for users in self._reshards.values():
            user, reshard = users[0]
            if len(users) == 1:
                while_running[user] += reshard.bytes
                continue
            begins, ends = zip(*[each.operation.span for each, _ in users], strict=True)
            times = user.operation.times if max(begins) > min(ends) else 1
            rows = slice(min(each.rows.start for each, _ in users), max(each.rows.stop for each, _ in users))
            memory[rows] += times * reshard.bytes
        most = np.zeros_like(memory)
        for user, bytes_ in while_running.items():
            if bytes_:
                most[user.rows] = np.maximum(most[user.rows], bytes_)
        return int((memory + most).max())


def scaled(times: float, seconds: Seconds) -> Seconds:
    """Return the seconds of `times` runs."""
    return {axes: times * each for axes, each in seconds.items()}
