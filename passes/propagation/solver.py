"""Solving a snapshot, to the fixed point: visit operations until no step changes a sharding.

Where shardings contend, who comes first wins, so that the order of visits is part of the result. It is that of MLIR's
greedy rewrite driver going top down, which Shardy uses: all operations are put on a stack, the first of the module on
top; the top one is taken and visited; what its step changed is put on the stack, unless it is there already. The
visited operation itself is not put back.

Two things keep that short. The part of the stack that is still as it was at the start is not stored: it is the
operations past `position`. And an operation is passed over when none of its tensors has a sharding, or when a visit
would surely set nothing: none of their shardings, and none of its directions, changed since its last visit, or that
visit itself changed them and left nothing to do. So it is for most in all rounds but the first.

The driver also erases operations that are trivially dead, and so do we: it takes uses away from their operands, and
who reads a tensor alone is propagated through earlier.

All that is asked is the snapshot, which stays as it is: it can be solved for other shardings, without the module.
"""

from collections.abc import Mapping, Sequence
from itertools import compress
from operator import ne

from sdy.passes.propagation.directions import ALL_STAGES
from sdy.passes.propagation.erasure import Erasure
from sdy.passes.propagation.rounds import Round, Rounds
from sdy.passes.propagation.snapshot import UNSHARDABLE, Snapshot
from sdy.passes.propagation.solution import LogEntry, Solution
from sdy.passes.propagation.step import NO_SHARDING, Strategy, remembered_steps
from sdy.sharding import TensorSharding

_BARE, _STALE, _DONE = None, True, False
"""What an operation is to the next visit: without a sharding around it; to be visited, which alone is true; with
nothing left to do."""


class Solver:
    """The shardings of a snapshot's nodes as they grow, round by round.

    Where nodes are `given` other shardings than the snapshot has, or None, these count. `rounds` are those of an
    earlier solver of the snapshot, as it was at first, with what it has found out.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        given: Mapping[int, TensorSharding | None] | None = None,
        rounds: Rounds | None = None,
    ) -> None:
        self.snapshot = snapshot
        changed = {**snapshot.given, **(given or {})}
        self.given = {node: sharding for node, sharding in changed.items() if sharding is not None}
        """The shardings that nodes have to begin with."""
        self._rounds = rounds or Rounds(remembered_steps(snapshot.meshes), snapshot.kinds)
        self.steps = self._rounds.steps
        self.visits = 0
        """How many visits of operations it took so far."""
        self._numbers = [NO_SHARDING] * snapshot.num_nodes
        """The number of each node's sharding."""
        self._kinds = list(snapshot.kinds)
        """What a step does at each operation, which erasures may change."""
        self._kinds_changed = False
        self._erasure = Erasure(snapshot.dead_code, self._kinds)
        self._log: list[LogEntry] = []
        """What is only asked for by those who want an explanation is left to be found then: to put it aside is slow."""
        self._milestones: list[tuple[int, Solution]] = []
        self._assigned = 0
        """How many shardings came from elsewhere than propagation."""
        self._state: list[bool | None] = [_BARE] * len(self._kinds)
        """What each operation is to the next visit: `_BARE`, `_STALE` or `_DONE`."""
        for node, sharding in self.given.items():
            self.assign(node, sharding)
        for number in snapshot.dead_code.dead:
            self._state[number] = _STALE
        self._last_round: Round | None = None
        self._settled_returns: tuple[Strategy, int, int] | None = None
        """When returns were found to have nothing to do."""
        self._returned = [value for _, (value, _) in snapshot.returns]
        self._results = [result for _, (_, result) in snapshot.returns]
        self._reached: dict[int, tuple[int, ...]] = {}
        self._position = 0
        self._stack: list[int] = []
        self._stacked = [False] * len(self._kinds)

    @property
    def numbers(self) -> Sequence[int]:
        """The present sharding of each node, by its number in `steps`."""
        return self._numbers

    def sharding(self, node: int) -> TensorSharding | None:
        """The present sharding of `node`."""
        return self.steps.shardings[self._numbers[node]]

    def assign(self, node: int, sharding: TensorSharding) -> None:
        """Give `node` a sharding that does not come from propagation."""
        self._numbers[node] = self.steps.number(sharding)
        self._assigned += 1
        self._make_readers_stale(node)

    def run(self, strategy: Strategy, stages: int) -> None:
        """Propagate with `strategy` through the operations that the first `stages` stages allow, as far as it goes."""
        self._wake(strategy, stages)
        self._visit_returns(strategy)
        self._visit_operations(strategy, stages)
        self._visit_returns(strategy)

    def add_milestone(self, priority: int) -> None:
        """Keep the solution so far, as what it was when this priority was done."""
        self._milestones.append((priority, self.solution()))

    def solution(self) -> Solution:
        """The solution so far."""
        return Solution(
            self.snapshot,
            tuple(map(self.steps.shardings.__getitem__, self._numbers)),
            tuple(self._erasure.erased),
            self.given,
            self.steps,
            tuple(self._log),
            tuple(self._milestones),
        )

    def _make_readers_stale(self, node: int) -> None:
        state = self._state
        for reader in self.snapshot.readers[node]:
            state[reader] = _STALE

    def _wake(self, strategy: Strategy, stages: int) -> None:
        """Make stale the operations to which this round is not like the last."""
        last_round, this_round = self._last_round, Round(strategy, stages)
        self._last_round = this_round
        if last_round is None:
            return
        if self._kinds_changed:
            self._rounds = Rounds(self.steps, self._kinds)
            self._kinds_changed = False
        state = self._state
        for number in self._rounds.woken(last_round, this_round):
            if state[number] is _DONE:
                state[number] = _STALE

    def _visit_returns(self, strategy: Strategy) -> None:
        now = strategy, len(self._log), self._assigned
        if now == self._settled_returns:
            return
        number_of = self._numbers.__getitem__
        # Between tensors that are split alike nothing moves.
        are_different = map(ne, map(number_of, self._returned), map(number_of, self._results))
        taken = self._rounds.outcomes(Round(strategy, ALL_STAGES))
        for index, (kind, tensors) in compress(enumerate(self.snapshot.returns), are_different):
            shardings = number_of(tensors[0]), number_of(tensors[1])
            outcome = taken[kind].get(shardings) if kind in taken else None
            if outcome is None:
                taken[kind] = self.steps.taken(kind, strategy, ALL_STAGES)
                outcome = self.steps.step(kind, strategy, ALL_STAGES, shardings)
            sets, _, _ = outcome
            if sets:
                self._log.append((~index, kind, outcome))
            for position, sharding in sets:
                for node in self.snapshot.group(tensors[position]):
                    self._set(node, sharding)
        if now == (strategy, len(self._log), self._assigned):
            self._settled_returns = now

    def _visit_operations(self, strategy: Strategy, stages: int) -> None:
        """Written to be fast: this loop goes round once for each visit."""
        snapshot, numbers, state, stack, stacked = self.snapshot, self._numbers, self._state, self._stack, self._stacked
        kinds, tensors_of, readers_of, routes = self._kinds, snapshot.tensors, snapshot.readers, snapshot.routes
        dead = self._erasure.dead
        number_of, log, push = numbers.__getitem__, self._log.append, stack.append
        taken = self._rounds.outcomes(Round(strategy, stages))
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
                if node in routes:
                    self._position = here
                    settles = False
                    for member in snapshot.group(node):
                        self._set(member, sharding)
                        self._push_reached(member, number)
                    continue
                numbers[node] = sharding
                for reader in readers_of[node]:
                    state[reader] = _STALE
                    if reader <= here and reader != number and not stacked[reader]:
                        stacked[reader] = True
                        push(reader)
            if settles:
                state[number] = _DONE
        self.visits += visits

    def _push_reached(self, node: int, visited: int) -> None:
        """Put what the change of `node` reaches on the stack, other than the visited operation."""
        for number in self._reached_from(node):
            if number != visited:
                self._push(number)

    def _reached_from(self, node: int) -> tuple[int, ...]:
        """What the change of `node` reaches, as it was when this was first asked for."""
        found = self._reached.get(node)
        if found is None:
            erased = self._erasure.erased
            reached: dict[int, None] = {}
            for operations, through, instead_of in self.snapshot.routes.get(node, ()):
                if all(number in erased for number in instead_of) and not any(number in erased for number in through):
                    reached.update(dict.fromkeys(operations))
            found = self._reached[node] = tuple(reached)
        return found

    def _push(self, number: int) -> None:
        if number <= self._position and not self._stacked[number]:
            self._stacked[number] = True
            self._stack.append(number)

    def _set(self, node: int, sharding: int) -> None:
        if node == UNSHARDABLE:
            return
        before = self._numbers[node]
        self._numbers[node] = sharding
        self._make_readers_stale(node)
        if before == NO_SHARDING:
            self._open_siblings(node)

    def _open_siblings(self, node: int) -> None:
        """Give the values that keep their shardings with that of `node` open ones, where they have none."""
        sharding = self.sharding(node)
        assert sharding is not None
        for sibling in self.snapshot.siblings.get(node, ()):
            if self._numbers[sibling.node] == NO_SHARDING:
                self.assign(sibling.node, TensorSharding.replicated_open(sharding.mesh, sibling.rank))

    def _erase(self, number: int) -> None:
        touched = self._erasure.erase(number)
        self._kinds_changed = True
        for user in touched.left_alone:
            self._state[user] = _STALE
        for neighbour in touched.neighbours:
            if neighbour in self._erasure.dead:
                self._state[neighbour] = _STALE
            self._push(neighbour)
