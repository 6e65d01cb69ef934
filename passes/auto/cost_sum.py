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
from sdy.passes.auto.loop_cycles import MovedInLoop, Place, hidden_in_iterations, hidden_in_loops
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
        of_loops: dict[int, list[int]] = defaultdict(list)
        for index, place in enumerate(places):
            if place is not None:
                of_loops[place.loop].append(index)
        self._of_loops = {
            loop: (np.array(indices), Spreads([operations[index].span for index in indices]))
            for loop, indices in of_loops.items()
        }
        """For each loop, the operations directly in it, and their positions."""

    def by_position(self) -> Floats:
        """Return the seconds at each position of the program, outside of loops."""
        return self._spreads.by_position(self.seconds[self._outside])

    def by_position_in(self, loop: int) -> Floats:
        """Return the seconds at each position of the program, directly in a loop."""
        indices, spreads = self._of_loops[loop]
        return spreads.by_position(self.seconds[indices])

    def longest_cycle(self, loop: int) -> float:
        """Return the seconds of the longest cycle of a loop, without its communication."""
        of_cycles: dict[int, float] = defaultdict(float)
        for place, seconds in self.in_loops():
            if place.loop == loop:
                for cycle in place.cycles:
                    of_cycles[cycle] += seconds
        return max(of_cycles.values(), default=0.0)

    def in_loops(self) -> Iterable[tuple[Place, float]]:
        """Return the seconds at each place in loops."""
        seconds = np.bincount(self._place_numbers, self.seconds[self._inside], len(self._places))
        return zip(self._places, seconds.tolist(), strict=True)


class _SharedReshard:
    """Reshard of an operand that several groups of operations use.

    Attributes:
        reshard: The reshard.
        user: The group that it was found for.
        is_ahead: True if it can run beside products.
        times: The number of runs in a step: those for each of the values that its users read.
        begin: The first time at which a user runs.
        end: The time after the last one.
        has_one_user: True if only `user` uses it.
    """

    __slots__ = (
        *("_first_end", "_last_begin", "_repeats", "_values"),
        *("begin", "end", "has_one_user", "is_ahead", "reshard", "user"),
    )

    def __init__(self, reshard: OperandReshard, user: GroupCost, is_ahead: bool) -> None:
        self.reshard, self.user, self.is_ahead = reshard, user, is_ahead
        self._repeats, self._values = user.operation.repeats, user.operation.reads[reshard.operand]
        self.begin, self.end = user.rows.start, user.rows.stop
        self._last_begin, self._first_end = user.operation.span
        self.has_one_user = True

    def add(self, user: GroupCost, operand: int) -> None:
        """Add a group that uses the reshard, too, at an operand."""
        begin, end = user.operation.span
        self._repeats = max(self._repeats, user.operation.repeats)
        self._values |= user.operation.reads[operand]
        self.begin, self.end = min(self.begin, user.rows.start), max(self.end, user.rows.stop)
        self._last_begin, self._first_end = max(self._last_begin, begin), min(self._first_end, end)
        self.has_one_user = False

    @property
    def times(self) -> float:
        return self._repeats * self._values.bit_count()

    @property
    def copies(self) -> float:
        """The number of copies that are live at the same time: those of all layers if the users are in two loops."""
        return self.times if self._last_begin > self._first_end else 1


class CostSum:
    """Accumulator for the cost of a step.

    Args:
        computation: The compute seconds of the operations.
        memory: The bytes of all live values at each time, without temporaries of operations and reshards of operands.
        is_asynchronous: True if communication runs beside computation.
        pipelines_loops: True if iterations of loops overlap.
    """

    def __init__(self, computation: Computation, memory: Floats, is_asynchronous: bool, pipelines_loops: bool) -> None:
        self._computation = computation
        self._memory = memory
        self._is_asynchronous = is_asynchronous
        self._pipelines_loops = pipelines_loops
        self._behind: list[Spread] = []
        """The communication that can run beside products that follow it."""
        self._in_loops: list[MovedInLoop] = []
        self._received = 0.0
        """The bytes that a device receives."""
        self._communication: dict[AxisNames, float] = defaultdict(float)
        self._scratch: dict[GroupCost, int] = {}
        """The temporaries of operations that communicate."""
        self._reshards: dict[tuple[int, tuple[str, ...]], _SharedReshard] = {}
        """The reshards of operands, by the node of the operand and the resharding operations."""

    def add(self, each: GroupCost) -> None:
        """Add the communication and the temporaries of equal operations."""
        times, cost = each.operation.times, each.cost
        if each.place is not None:
            moved = scaled(times, cost.communication)
            self._in_loops.append(MovedInLoop(each.place, moved, each.operation.span, False, each.is_behind))
        behind = each.operation.span if each.is_behind and each.place is None else None
        self.send(times, cost.communication, cost.received, behind)
        self._scratch[each] = cost.scratch
        for reshard, is_ahead, place in zip(cost.reshards, each.ahead, each.places, strict=True):
            key = each.operation.nodes[reshard.operand], reshard.steps
            shared = self._reshards.get(key)
            if shared is not None:
                shared.add(each, reshard.operand)
                continue
            self._reshards[key] = _SharedReshard(reshard, each, is_ahead and place is None)
            if place is not None:
                moved = scaled(times, reshard.communication)
                self._in_loops.append(MovedInLoop(place, moved, each.operation.span, is_ahead, False))

    def send(self, times: float, seconds: Seconds, received: float, behind: tuple[int, int] | None) -> None:
        """Add the communication of `times` runs; in each, a device receives `received` bytes.

        It can run beside products that follow `behind`, the first and the last position of its operations, if given.
        """
        self._received += times * received
        for axes, each in seconds.items():
            self._communication[axes] += times * each
        if behind is not None:
            self._behind.append((behind, times * sum(seconds.values())))

    def cost(self, least: float = 0.0) -> StepCost:
        """Return the cost of the added operations, plus a lower bound of the seconds of the others if there are any."""
        communication, received = self._communication.copy(), self._received
        ahead: list[Spread] = []
        for shared in self._reshards.values():
            times, reshard = shared.times, shared.reshard
            received += times * reshard.received
            for axes, each in reshard.communication.items():
                communication[axes] += times * each
            if shared.is_ahead:
                ahead.append((shared.user.operation.span, times * sum(reshard.communication.values())))
        compute = float(self._computation.seconds.sum()) + least
        overlap = self._hidden(ahead, compute, least > 0) if self._is_asynchronous else 0.0
        return StepCost(compute, dict(communication), self._peak_memory(), overlap=overlap, received=received)

    def _hidden(self, ahead: Sequence[Spread], compute: float, is_bound: bool) -> float:
        """Return the seconds of communication that run beside computation: all that could if some costs are unknown."""
        outside = sum([seconds for _, seconds in (*ahead, *self._behind)])
        if is_bound:
            in_loops = sum([sum(each.seconds.values()) for each in self._in_loops])
            return min(outside, compute) + in_loops
        if outside:
            computed = self._computation.by_position()
            outside -= exposed_seconds(ahead, computed, ahead=True)
            outside -= exposed_seconds(self._behind, computed, ahead=False)
        return min(outside, compute) + self._hidden_in_loops()

    def _hidden_in_loops(self) -> float:
        """Return the seconds of communication in loops that run beside computation or each other."""
        if self._pipelines_loops:
            return hidden_in_loops(self._computation.in_loops(), self._in_loops)
        of_loops: dict[int, list[MovedInLoop]] = defaultdict(list)
        for each in self._in_loops:
            of_loops[each.place.loop].append(each)
        computation = self._computation
        return sum(
            [
                hidden_in_iterations(moved, computation.by_position_in(loop), computation.longest_cycle(loop))
                for loop, moved in of_loops.items()
            ]
        )

    def _peak_memory(self) -> int:
        """Return the peak memory in bytes, including temporaries of operations and resharded copies of values.

        A copy with several users is live from the first to the last. If a user in the forward pass and one in the
        backward pass share it, the copies of all layers are live at the same time. A copy with one user is live only
        for that user.
        """
        memory, while_running = self._memory.copy(), self._scratch.copy()
        for shared in self._reshards.values():
            if shared.has_one_user:
                while_running[shared.user] += shared.reshard.bytes
            else:
                memory[shared.begin : shared.end] += shared.copies * shared.reshard.bytes
        most = np.zeros_like(memory)
        for user, bytes_ in while_running.items():
            if bytes_:
                most[user.rows] = np.maximum(most[user.rows], bytes_)
        return int((memory + most).max())


def scaled(times: float, seconds: Seconds) -> Seconds:
    """Return the seconds of `times` runs."""
    return {axes: times * each for axes, each in seconds.items()}
