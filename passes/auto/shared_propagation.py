"""Propagation of many layouts of one program.

Layouts that differ only in shardings of later priorities propagate alike until then, and share that propagation.
"""

from collections import OrderedDict
from collections.abc import Mapping

from sdy.passes.propagation.rounds import Rounds
from sdy.passes.propagation.snapshot import Snapshot
from sdy.passes.propagation.solver import Solver
from sdy.passes.propagation.step import Steps
from sdy.passes.propagation.user_priority_propagate import UserPriorityPropagatePass, later_priorities
from sdy.sharding import TensorSharding

Layout = Mapping[int, TensorSharding]
"""Shardings of nodes of a folded program, before propagation."""

_PROPAGATE = UserPriorityPropagatePass()

_MOST_SOLVERS = 64
"""Number of solvers that are kept, the last ones used."""

_Key = tuple[int, frozenset[tuple[int, TensorSharding]]]
"""A priority, and the layout without the shardings of later priorities."""


class SharedPropagation:
    """The solvers of a snapshot without dead code, by the layout and the priorities that they have propagated.

    Args:
        snapshot: The snapshot.
        steps: The interned shardings, which number those of the solvers.
    """

    def __init__(self, snapshot: Snapshot, steps: Steps) -> None:
        self._snapshot = snapshot
        self._rounds = Rounds(steps, snapshot.kinds)
        self._solvers = OrderedDict[_Key, Solver]()
        self._pending: dict[tuple[TensorSharding, int], TensorSharding] = {}
        self.visits = 0
        """The number of visits of operations so far."""

    def solve(self, layout: Layout) -> Solver:
        """Return a solver at the fixed point of `layout`; it must not run."""
        initial = {**self._snapshot.initial, **layout}
        priorities = [0, *later_priorities(initial.values())]
        keys = [self._key(layout, priority) for priority in priorities]
        last_known = next((level for level in reversed(range(len(keys))) if keys[level] in self._solvers), -1)
        solver = self._solvers[keys[last_known]] if last_known >= 0 else None
        for level in range(max(last_known, 0), len(priorities)):
            key, priority = keys[level], priorities[level]
            if level > last_known:
                if solver is None:
                    solver = Solver(self._snapshot, dict(key[1]), self._rounds)
                    _PROPAGATE.propagate_first(solver)
                else:
                    solver = solver.fork(initial)
                    _PROPAGATE.propagate_priority(solver, priority)
                self.visits += solver.visits
                self._solvers[key] = solver
            self._solvers.move_to_end(key)
        while len(self._solvers) > _MOST_SOLVERS:
            self._solvers.popitem(last=False)
        assert solver is not None
        return solver

    def _key(self, layout: Layout, priority: int) -> _Key:
        return priority, frozenset([(node, self._until(sharding, priority)) for node, sharding in layout.items()])

    def _until(self, sharding: TensorSharding, priority: int) -> TensorSharding:
        """Return the sharding that stands for one of a later priority: nothing propagates to or from closed dimensions.

        Its axes are not named as replicated, unlike in `UserPriorityPropagatePass`: that keeps them from open
        dimensions only.
        """
        key = sharding, priority
        pending = self._pending.get(key)
        if pending is None:
            is_later = sharding.is_fully_closed and any(dim.priority_or_default > priority for dim in sharding.dims)
            replicated = TensorSharding.replicated_closed(sharding.mesh, sharding.rank)
            pending = self._pending[key] = replicated if is_later else sharding
        return pending
