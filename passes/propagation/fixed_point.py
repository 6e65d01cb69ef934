"""The fixed point: visit operations until no step changes a sharding.

Where shardings contend, who comes first wins, so that the order of visits is part of the result. It is that of MLIR's
greedy rewrite driver going top down, which Shardy uses: all operations are put on a stack, the first of the module on
top; the top one is taken and visited; what its step changed is put on the stack, unless it is there already. The
visited operation itself is not put back.

Two things keep that short. The part of the stack that is still as it was at the start is not stored: it is the
operations past `position`. And an operation is passed over when none of its tensors has a sharding, or when a visit
would surely set nothing: none of their shardings, and none of its directions, changed since its last visit, or that
visit itself changed them and left nothing to do. So it is for most in all rounds but the first.

The driver also erases operations whose results nobody uses, and so do we: it takes uses away from their operands, and
who reads a tensor alone is propagated through earlier.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import compress
from operator import ne
from typing import NamedTuple

from sdy.passes.propagation.directions import ALL_STAGES
from sdy.passes.propagation.graph import UNSHARDABLE, Graph
from sdy.passes.propagation.step import NO_SHARDING, Kind, Occasion, Outcome, Outcomes, Steps, Strategy
from sdy.sharding import TensorSharding

SIGNATURE = -1
"""In place of an operation's number: the main function's signature, which ties returned values to results."""

_BARE, _STALE, _DONE = None, True, False
"""What an operation is to the next visit: without a sharding around it; to be visited, which alone is true; with
nothing left to do."""


class Change(NamedTuple):
    """A visit that set shardings: all that it takes to take its step once more."""

    operation: int
    """The number of the operation, or `SIGNATURE`."""
    tensors: Sequence[int]
    """The nodes of its tensors."""
    kind: Kind
    occasion: Occasion


class FixedPoint:
    """The shardings of a graph's nodes as they grow, round by round."""

    def __init__(self, graph: Graph, steps: Steps) -> None:
        self.graph = graph
        self.steps = steps
        self.numbers = [NO_SHARDING] * len(graph.places)
        """The number of each node's sharding."""
        self.visits = 0
        """How many visits of operations it took so far."""
        self._log: list[tuple[int, Kind, Outcome]] = []
        """The visits that set something, in order: of an operation, or of the return of value n as `~n`.

        What is only asked for by those who want an explanation is left to be found then: to put it all aside is slow.
        """
        self._state: list[bool | None] = [_BARE] * len(graph.kinds)
        """What each operation is to the next visit: `_BARE`, `_STALE` or `_DONE`."""
        for node, sharding in graph.given.items():
            self.assign(node, sharding)
        for number in graph.dead:
            self._state[number] = _STALE
        self.written = list(self.numbers)
        """The number of the sharding that each node has in the module."""
        self._numbers_of_kinds: dict[Kind, list[int]] = {}
        self._last_round: tuple[Strategy, int] | None = None
        self._returned = [value for _, (value, _) in graph.returns]
        self._results = [result for _, (_, result) in graph.returns]
        self._reached: dict[int, tuple[int, ...]] = {}
        self._reaching_further = {UNSHARDABLE, *graph.winding, *graph.groups, *graph.siblings}
        """The nodes whose change is more than a change of their own that matters to their readers."""
        self._position = 0
        self._stack: list[int] = []
        self._stacked = [False] * len(graph.kinds)

    @property
    def changes(self) -> Sequence[Change]:
        """The visits that set something, in order."""
        tensors, returns = self.graph.tensors, self.graph.returns
        return [
            Change(number, tensors[number], kind, occasion)
            if number >= 0
            else Change(SIGNATURE, returns[~number].tensors, kind, occasion)
            for number, kind, (_, _, occasion) in self._log
        ]

    def sharding(self, node: int) -> TensorSharding | None:
        """The present sharding of `node`."""
        return self.steps.shardings[self.numbers[node]]

    def assign(self, node: int, sharding: TensorSharding | None) -> None:
        """Give `node` a sharding that does not come from propagation."""
        self.numbers[node] = self.steps.number(sharding)
        self._make_readers_stale(node)

    def run(self, strategy: Strategy, stages: int) -> None:
        """Propagate with `strategy` through the operations that the first `stages` stages allow, as far as it goes."""
        self._wake(strategy, stages)
        self._visit_returns(strategy)
        self._visit_operations(strategy, stages)
        self._visit_returns(strategy)

    def _make_readers_stale(self, node: int) -> None:
        state = self._state
        for reader in self.graph.readers[node]:
            state[reader] = _STALE

    def _wake(self, strategy: Strategy, stages: int) -> None:
        """Make stale the operations to which this round is not like the last."""
        last_round = self._last_round
        self._last_round = (strategy, stages)
        if last_round is None:
            return
        last_strategy, last_stages = last_round
        if not self._numbers_of_kinds:
            of_kinds = defaultdict[Kind, list[int]](list)
            for number, kind in enumerate(self.graph.kinds):
                if kind is not None:
                    of_kinds[kind].append(number)
            self._numbers_of_kinds = of_kinds
        state = self._state
        for kind, numbers in self._numbers_of_kinds.items():
            if strategy != last_strategy or kind.directions[stages] != kind.directions[last_stages]:
                for number in numbers:
                    if state[number] is _DONE:
                        state[number] = _STALE

    def _visit_returns(self, strategy: Strategy) -> None:
        number_of = self.numbers.__getitem__
        # Between tensors that are split alike nothing moves.
        are_different = map(ne, map(number_of, self._returned), map(number_of, self._results))
        for index, (kind, tensors) in compress(enumerate(self.graph.returns), are_different):
            shardings = number_of(tensors[0]), number_of(tensors[1])
            outcome = self.steps.step(kind, strategy, ALL_STAGES, shardings)
            sets, _, _ = outcome
            if sets:
                self._log.append((~index, kind, outcome))
            for position, sharding in sets:
                for node in self.graph.group(tensors[position]):
                    self._set(node, sharding)

    def _visit_operations(self, strategy: Strategy, stages: int) -> None:
        """Written to be fast: this loop goes round once for each visit."""
        graph, numbers, state, stack, stacked = self.graph, self.numbers, self._state, self._stack, self._stacked
        kinds, tensors_of, dead, readers = graph.kinds, graph.tensors, graph.dead, graph.readers
        number_of, log = numbers.__getitem__, self._log.append
        reaching_further = self._reaching_further
        taken: dict[Kind, Outcomes] = {}
        # What becomes stale on the way is found too, if it is not passed yet.
        stale = compress(range(len(kinds)), state)
        here = -1
        visits = 0
        while True:
            if stack:
                number = stack.pop()
                stacked[number] = False
                if not state[number]:
                    continue
            else:
                number = next(stale, None)
                if number is None:
                    break
                here = number
            state[number] = _DONE
            visits += 1
            if dead and number in dead:
                self._position = here
                self._erase(number)
                continue
            kind = kinds[number]
            if kind is None:
                continue
            tensors = tensors_of[number]
            # Most operations have three or two tensors, and to write these out takes a third of the time.
            match len(tensors):
                case 3:
                    one, two, three = tensors
                    shardings = numbers[one], numbers[two], numbers[three]
                case 2:
                    one, two = tensors
                    shardings = numbers[one], numbers[two]
                case _:
                    shardings = (*map(number_of, tensors),)
            outcomes = taken.get(kind)
            if outcomes is None:
                outcomes = taken[kind] = self.steps.taken(kind, strategy, stages)
            outcome = outcomes.get(shardings)
            if outcome is None:
                outcome = self.steps.step(kind, strategy, stages, shardings)
            sets, settles, _ = outcome
            if not sets:
                continue
            log((number, kind, outcome))
            for position, sharding in sets:
                node = tensors[position]
                if node in reaching_further:
                    self._position = here
                    settles = False
                    for member in graph.group(node):
                        self._set(member, sharding)
                        self._push_reached(member, number)
                    continue
                numbers[node] = sharding
                reached: list[int] = []
                for reader in readers[node]:
                    state[reader] = _STALE
                    if reader <= here and reader != number and not stacked[reader]:
                        reached.append(reader)
                if reached:
                    # Their order only matters where there are several.
                    if len(reached) > 1:
                        reached = graph.in_order_of_shardy(node, reached)
                    for reader in reached:
                        stacked[reader] = True
                    stack += reached
            if settles:
                state[number] = _DONE
        self.visits += visits

    def _push_reached(self, node: int, visited: int) -> None:
        """Put what the change of `node` reaches on the stack, other than the visited operation."""
        for number in self._reached_from(node):
            if number != visited:
                self._push(number)

    def _set(self, node: int, sharding: int) -> None:
        if node == UNSHARDABLE:
            return
        before = self.numbers[node]
        self.numbers[node] = sharding
        self._make_readers_stale(node)
        if before == NO_SHARDING:
            self._open_siblings(node)

    def _open_siblings(self, node: int) -> None:
        """Give the values that keep their shardings with that of `node` open ones, where they have none."""
        sharding = self.sharding(node)
        assert sharding is not None
        for sibling in self.graph.siblings.get(node, ()):
            if self.numbers[sibling] == NO_SHARDING:
                self.assign(sibling, TensorSharding.replicated_open(sharding.mesh, self.graph.rank(sibling)))

    def _reached_from(self, node: int) -> tuple[int, ...]:
        if node not in self._reached:
            self._reached[node] = self.graph.reached_from(node)
        return self._reached[node]

    def _push(self, number: int) -> None:
        if number <= self._position and not self._stacked[number]:
            self._stacked[number] = True
            self._stack.append(number)

    def _erase(self, number: int) -> None:
        erased = self.graph.erase(number)
        self._numbers_of_kinds.clear()
        for user in erased.left_alone:
            self._state[user] = _STALE
        for neighbour in erased.neighbours:
            if neighbour in self.graph.dead:
                self._state[neighbour] = _STALE
            self._push(neighbour)
