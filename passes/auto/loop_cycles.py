"""Cycles of loops: operations that an iteration executes one after the other, from a carried value to its next value.

Consecutive iterations overlap where only data orders them. Slices of stacked parameters and gradients of parameters are
in no cycle with the activations, so they run beside the collectives of that cycle:

    h  ->  dot  ->  all-reduce  ->  next h        a cycle, with an exposed collective
    parameters  ->  slice  ->  dot                in no cycle: runs beside the all-reduce

A loop takes as long as its computation, its busiest link or its longest cycle, whichever takes longest.

Where hardware does not pipeline loops, communication runs beside computation of its own iteration only, but for gathers
that `sdy-prefetch-in-loops` moves to the iteration before.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from sdy.ir.walking import captured_values, operations
from sdy.passes.auto.overlap import Floats, Spread, exposed_seconds
from sdy.passes.spmd.costs.network import AxisNames
from sdy.passes.spmd.costs.step_time import COMPUTATION
from sdy.stablehlo import WhileOp

_NO_CYCLES = frozenset[int]()


@dataclass(frozen=True, slots=True)
class Place:
    """The innermost loop around an operation or a collective, by number, and the cycles that contain it."""

    loop: int
    cycles: Set[int]


@dataclass(frozen=True, slots=True)
class MovedInLoop:
    """Communication of equal operations in a loop, in all iterations."""

    place: Place
    seconds: Mapping[AxisNames, float]
    span: tuple[int, int]
    """The first and the last position of the operations."""
    is_ahead: bool
    """True if it waits for no product of the iteration."""
    is_behind: bool
    """True if no product of the iteration waits for it."""


class LoopCycles:
    """The loops of a module and their cycles, by numbers."""

    def __init__(self, module: ModuleOp) -> None:
        self._places: dict[Operation, Place] = {}
        self._cycles: list[Set[Operation]] = []
        for loop in operations(module):
            if isinstance(loop, WhileOp):
                self._add(loop)

    def _add(self, loop: WhileOp) -> None:
        number, first = len(self._places), len(self._cycles)
        self._cycles += _cycles(loop)
        for op in (*loop.cond.block.ops, *loop.body.block.ops):
            cycles = [cycle for cycle in range(first, len(self._cycles)) if op in self._cycles[cycle]]
            self._places[op] = Place(number, frozenset(cycles))

    def place(self, op: Operation) -> Place | None:
        """Return the place of `op`, or of the operation whose region it is in; None if it is in no loop."""
        root: Operation | None = op
        while root is not None and root not in self._places:
            root = root.parent_op()
        return None if root is None else self._places[root]

    def place_of_operand(self, op: Operation, operand: int) -> Place | None:
        """Return the place of a reshard of an operand: in the cycles of `op` and of what computes the operand."""
        place, owner = self.place(op), op.operands[operand].owner
        if place is None or isinstance(owner, Block):
            return place
        before = self._places.get(owner)
        return Place(place.loop, place.cycles & (before.cycles if before is not None else _NO_CYCLES))


def hidden_in_loops(computation: Iterable[tuple[Place, float]], communication: Iterable[MovedInLoop]) -> float:
    """Return the seconds of communication in pipelined loops that run beside computation or each other.

    Args:
        computation: Places with the seconds of computation there.
        communication: The communication.
    """
    total, busiest, of_cycles = (defaultdict[int, float](float) for _ in range(3))
    of_rows: dict[tuple[int, str], float] = defaultdict(float)
    loop_of: dict[int, int] = {}
    executed: list[tuple[Place, float]] = []
    for place, seconds in computation:
        executed.append((place, seconds))
        of_rows[place.loop, COMPUTATION] += seconds
    for moved in communication:
        executed.append((moved.place, sum(moved.seconds.values())))
        for axes, each in moved.seconds.items():
            for axis in axes:
                of_rows[moved.place.loop, axis] += each
    for place, seconds in executed:
        total[place.loop] += seconds
        for cycle in place.cycles:
            of_cycles[cycle] += seconds
            loop_of[cycle] = place.loop
    for (loop, _), seconds in of_rows.items():
        busiest[loop] = max(busiest[loop], seconds)
    for cycle, loop in loop_of.items():
        busiest[loop] = max(busiest[loop], of_cycles[cycle])
    return sum(total.values()) - sum(busiest.values())


def hidden_in_iterations(communication: Iterable[MovedInLoop], computed: Floats, in_cycle: float) -> float:
    """Return the seconds of communication in one loop that run beside computation of their own iteration.

    Collectives that products wait for run beside what is in another cycle, such as gradients of parameters.

    Args:
        communication: The communication.
        computed: The seconds of computation at each position of the program, in this loop.
        in_cycle: The seconds of computation in the cycle with the most.
    """
    ahead = waited = 0.0
    behind: list[Spread] = []
    for moved in communication:
        seconds = sum(moved.seconds.values())
        if moved.is_behind:
            behind.append((moved.span, seconds))
        elif moved.is_ahead:
            ahead += seconds
        else:
            waited += seconds
    after = sum([seconds for _, seconds in behind])
    if behind:
        after -= exposed_seconds(behind, computed, ahead=False)
    total = float(computed.sum())
    return min(ahead + after + min(waited, total - in_cycle), total)


def _cycles(loop: WhileOp) -> Sequence[Set[Operation]]:
    """Return the operations between each carried value and its next value, without those in a larger cycle."""
    body = loop.body.block
    end = body.last_op
    assert end is not None
    inner = [op for op in body.ops if op is not end]
    found = {
        frozenset(_users({argument}, inner)).intersection(_producers({returned}, inner))
        for argument, returned in zip(body.args, end.operands, strict=True)
    }
    return [cycle for cycle in found if cycle and not any(cycle < other for other in found)]


def _users(values: Set[SSAValue], ordered: Sequence[Operation]) -> Iterator[Operation]:
    """Yield the operations that depend on `values`."""
    reached = {*values}
    for op in ordered:
        if not reached.isdisjoint(_reads(op)):
            reached.update(op.results)
            yield op


def _producers(values: Set[SSAValue], ordered: Sequence[Operation]) -> Iterator[Operation]:
    """Yield the operations that `values` depend on."""
    needed = {*values}
    for op in reversed(ordered):
        if not needed.isdisjoint(op.results):
            needed.update(_reads(op))
            yield op


def _reads(op: Operation) -> Collection[SSAValue]:
    return (*op.operands, *captured_values(op)) if op.regions else op.operands
