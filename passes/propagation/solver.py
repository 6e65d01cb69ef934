"""The fixed-point solver: visit operations until no step changes a sharding.

If shardings conflict, the first to arrive wins, so the result depends on the order of visits. The solver follows the
order of MLIR's top-down greedy rewrite driver, which Shardy uses. The driver puts all operations on a stack, the
module's first operation on top. It pops and visits one operation after the other, and pushes the operations affected by
a changed sharding, unless they are on the stack already. The visited operation itself is not pushed.

Two optimizations keep this fast. The solver does not store the initial stack: all operations past `position` are still
on it. And it skips an operation if none of its tensors has a sharding, or if a visit is known to change nothing:
neither the shardings nor the directions changed since its last visit, or no directions would change them, or only that
visit changed them and left nothing to do. In all rounds but the first, most operations are skipped.

The driver erases trivially dead operations, and so does the solver: an erasure removes uses, and an operation that is
the only user of its operands takes part in an earlier stage.

The solver reads only the snapshot and does not change it: a snapshot can be solved for other initial shardings without
its module.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from itertools import compress
from operator import ne

from sdy.passes.propagation.directions import ALL_STAGES
from sdy.passes.propagation.erasure import Erasure
from sdy.passes.propagation.rounds import Round, Rounds
from sdy.passes.propagation.snapshot import UNSHARDABLE, Snapshot
from sdy.passes.propagation.solution import LogEntry, Solution
from sdy.passes.propagation.step import NO_SHARDING, Strategy, memoized_steps
from sdy.sharding import TensorSharding

_BARE, _STALE, _DONE, _SETTLED = None, True, False, 0
"""The state of an operation: no tensor has a sharding; to be visited (the only true value); at the fixed point of this
round; at the fixed point of all rounds with this strategy."""


class Solver:
    """The evolving shardings of a snapshot's nodes, round by round.

    Args:
        snapshot: The snapshot to solve.
        initial: Initial shardings of nodes, which override those of the snapshot; None removes a sharding.
        rounds: The memoized results of an earlier solver of the same snapshot, before any erasure.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        initial: Mapping[int, TensorSharding | None] | None = None,
        rounds: Rounds | None = None,
    ) -> None:
        self.snapshot = snapshot
        changed = {**snapshot.initial, **(initial or {})}
        self.initial: Mapping[int, TensorSharding] = {
            node: sharding for node, sharding in changed.items() if sharding is not None
        }
        """The initial shardings of nodes."""
        self._rounds = rounds or Rounds(memoized_steps(snapshot.meshes), snapshot.kinds)
        self.steps = self._rounds.steps
        self.visits = 0
        """The number of visits of operations so far."""
        self._numbers = [NO_SHARDING] * snapshot.num_nodes
        """The number of each node's sharding."""
        self._kinds = list(snapshot.kinds)
        """The kind of each operation, which erasures may change."""
        self._kinds_changed = False
        self._erasure = Erasure(snapshot.dead_code, self._kinds)
        self._log: list[LogEntry] = []
        """The visits that changed shardings. Moves are derived from it only when an explanation is requested: to record
        them here would be slow."""
        self._milestones: list[tuple[int, Solution]] = []
        self._assigned = 0
        """The number of calls of `assign`, which set shardings that no step propagated."""
        self._state: list[bool | int | None] = [_BARE] * len(self._kinds)
        """The state of each operation: `_BARE`, `_STALE`, `_DONE` or `_SETTLED`."""
        for node, sharding in self.initial.items():
            self.assign(node, sharding)
        for number in snapshot.dead_code.dead:
            self._state[number] = _STALE
        self._last_round: Round | None = None
        self._settled_returns: tuple[Strategy, int, int] | None = None
        """The strategy, log length and `_assigned` at which the returns last were at their fixed point."""
        self._returned = [value for _, (value, _) in snapshot.returns]
        self._results = [result for _, (_, result) in snapshot.returns]
        self._reached: dict[int, tuple[int, ...]] = {}
        self._position = 0
        self._stack: list[int] = []
        self._stacked = [False] * len(self._kinds)

    def fork(self, initial: Mapping[int, TensorSharding]) -> "Solver":
        """Return a copy between two runs, with other initial shardings: those of priorities that it has not reached.

        The snapshot has no dead code, since forks share what erasures change.
        """
        other = copy(self)
        other.initial = initial
        other.visits = 0
        other._numbers, other._state = self._numbers.copy(), self._state.copy()
        other._log, other._milestones = self._log.copy(), self._milestones.copy()
        return other

    @property
    def numbers(self) -> Sequence[int]:
        """The current sharding of each node, by its number in `steps`."""
        return self._numbers

    def sharding(self, node: int) -> TensorSharding | None:
        """Return the current sharding of `node`."""
        return self.steps.shardings[self._numbers[node]]

    def assign(self, node: int, sharding: TensorSharding) -> None:
        """Set the sharding of `node` to one that no step propagated."""
        self._numbers[node] = self.steps.number(sharding)
        self._assigned += 1
        self._make_readers_stale(node)

    def run(self, strategy: Strategy, stages: int) -> None:
        """Propagate with `strategy`, in the directions that the first `stages` stages allow, to the fixed point."""
        self._wake(strategy, stages)
        self._visit_returns(strategy)
        self._visit_operations(strategy, stages)
        self._visit_returns(strategy)

    def add_milestone(self, priority: int) -> None:
        """Save the current solution as the one after `priority`."""
        self._milestones.append((priority, self.solution()))

    def solution(self) -> Solution:
        """Return the current solution."""
        return Solution(
            self.snapshot,
            tuple(map(self.steps.shardings.__getitem__, self._numbers)),
            tuple(self._erasure.erased),
            self.initial,
            self.steps,
            tuple(self._log),
            tuple(self._milestones),
        )

    def _make_readers_stale(self, node: int) -> None:
        state = self._state
        for reader in self.snapshot.readers[node]:
            state[reader] = _STALE

    def _wake(self, strategy: Strategy, stages: int) -> None:
        """Mark the operations stale whose steps in this round can differ from the last round."""
        last_round, this_round = self._last_round, Round(strategy, stages)
        self._last_round = this_round
        if last_round is None:
            return
        if self._kinds_changed:
            self._rounds = Rounds(self.steps, self._kinds)
            self._kinds_changed = False
        state = self._state
        is_new_strategy = strategy != last_round.strategy
        for number in self._rounds.woken(last_round, this_round):
            if state[number] is _DONE or (is_new_strategy and state[number] is _SETTLED):
                state[number] = _STALE

    def _visit_returns(self, strategy: Strategy) -> None:
        now = strategy, len(self._log), self._assigned
        if now == self._settled_returns:
            return
        number_of = self._numbers.__getitem__
        # Nothing propagates between tensors with equal shardings.
        are_different = map(ne, map(number_of, self._returned), map(number_of, self._results))
        outcomes_by_kind = self._rounds.outcomes(Round(strategy, ALL_STAGES))
        for index, (kind, tensors) in compress(enumerate(self.snapshot.returns), are_different):
            shardings = number_of(tensors[0]), number_of(tensors[1])
            outcome = outcomes_by_kind[kind].get(shardings) if kind in outcomes_by_kind else None
            if outcome is None:
                outcomes_by_kind[kind] = self.steps.outcomes(kind, strategy, ALL_STAGES)
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
        """Visit operations until none is stale. Optimized: the loop body runs once per visit."""
        snapshot, numbers, state, stack, stacked = self.snapshot, self._numbers, self._state, self._stack, self._stacked
        kinds, tensors_of, readers_of, routes = self._kinds, snapshot.tensors, snapshot.readers, snapshot.routes
        dead = self._erasure.dead
        number_of, log, push = numbers.__getitem__, self._log.append, stack.append
        outcomes_by_kind = self._rounds.outcomes(Round(strategy, stages))
        # `compress` is lazy: it also yields operations ahead that become stale during the loop.
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
            # Most operations have two or three tensors; unrolling these cases takes a third of the time.
            match len(tensors):
                case 3:
                    one, two, three = tensors
                    shardings = numbers[one], numbers[two], numbers[three]
                case 2:
                    one, two = tensors
                    shardings = numbers[one], numbers[two]
                case _:
                    shardings = (*map(number_of, tensors),)
            outcomes = outcomes_by_kind.get(kind)
            if outcomes is None:
                outcomes = outcomes_by_kind[kind] = self.steps.outcomes(kind, strategy, stages)
            outcome = outcomes.get(shardings)
            if outcome is None:
                outcome = self.steps.step(kind, strategy, stages, shardings)
            sets, settles, _ = outcome
            if not sets:
                if settles:
                    state[number] = _SETTLED
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
        """Push the operations that the change of `node` affects, other than the visited operation."""
        for number in self._reached_from(node):
            if number != visited:
                self._push(number)

    def _reached_from(self, node: int) -> tuple[int, ...]:
        """Return the operations that a change of `node` affects, as of the first call for `node`."""
        affected = self._reached.get(node)
        if affected is None:
            erased = self._erasure.erased
            reached: dict[int, None] = {}
            for operations, through, instead_of in self.snapshot.routes.get(node, ()):
                if all(number in erased for number in instead_of) and not any(number in erased for number in through):
                    reached.update(dict.fromkeys(operations))
            affected = self._reached[node] = tuple(reached)
        return affected

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
        """Give each sibling of `node` without a sharding an open one."""
        sharding = self.sharding(node)
        assert sharding is not None
        for sibling in self.snapshot.siblings.get(node, ()):
            if self._numbers[sibling.node] == NO_SHARDING:
                self.assign(sibling.node, TensorSharding.replicated_open(sharding.mesh, sibling.rank))

    def _erase(self, number: int) -> None:
        effects = self._erasure.erase(number)
        self._kinds_changed = True
        for user in effects.sole_users:
            self._state[user] = _STALE
        for definer in effects.definers:
            if definer in self._erasure.dead:
                self._state[definer] = _STALE
            self._push(definer)
