"""Search for a good assignment: reduction, Lagrangian relaxation, annealing, and branch and bound."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from time import monotonic

import numpy as np

from iopddl_solver.annealing import anneal
from iopddl_solver.cost_tables import Floats, Indices, Ints, Tables, tabulate
from iopddl_solver.evaluation import cost_in, priced_costs, usage_in
from iopddl_solver.exact import solve_exactly
from iopddl_solver.problem import Assignment, Problem, cost_of
from iopddl_solver.reduction import Reduction, memory_at
from iopddl_solver.relaxation import Relaxation
from iopddl_solver.solution import is_optimal

ASCENT = 3000
"""Maximum number of steps of the relaxation."""
BLOCK = 64
"""Maximum number of nodes of a tree in annealing."""
HEAT = (0.1, 0.3, 0.03)
"""Initial temperatures of annealing rounds, in units of the optimality gap divided by the square root of the number of
nodes."""
COLD = 1e-3
"""Final temperature of a round, relative to the initial one."""
RELAXING = 0.3
"""Maximum fraction of the remaining time for the relaxation."""
EXACTLY = 0.7
"""Fraction of the remaining time for branch and bound."""
SHORT = 50
"""Steps per node of the first annealing round; each later round is twice as long as the one before."""
WORTH_IT = 0.1
"""Minimum fraction of pruned strategies for which the problem is reduced and relaxed again."""
HUGE = np.iinfo(np.int64).max
REPAIRS = 40
"""Maximum number of attempts to find an assignment within the memory limit."""
PIECES = 40
"""Minimum number of pieces of an annealing round, between which it can end."""
LONGEST_PIECE = 5000
"""Maximum number of steps of a piece of a long round."""
LARGEST_EXACT = 1000
"""Maximum number of nodes of a problem for branch and bound."""


@dataclass
class Search:
    """An anytime search: its attributes hold the best result so far."""

    problem: Problem
    deadline: float
    assignment: Assignment | None = None
    """The best feasible assignment."""
    cost: float = np.inf
    """Its cost."""
    bound: float = -np.inf
    """A lower bound of the cost."""
    excessive: Assignment | None = None
    """The assignment with the least memory excess, as long as none is feasible."""
    excess: float = np.inf
    """Its memory excess, summed over time."""
    short_at: int | None = None
    """A time at which every assignment exceeds the memory limit, if one is known."""
    tables: Tables = field(init=False)
    indices: Indices = field(init=False)
    reduction: Reduction = field(init=False)
    relaxation: Relaxation = field(init=False)

    def __post_init__(self):
        self._prices: dict[int, float] = {}
        costs = (*self.problem.costs, *self.problem.matrices)
        self._is_whole = all((np.floor(each) == each).all() for each in costs)

    @property
    def is_over(self) -> bool:
        """True if the best assignment is optimal, or the deadline has passed."""
        return self.is_settled or monotonic() >= self.deadline

    @property
    def is_settled(self) -> bool:
        """True if the bound proves the best assignment optimal, up to a tolerance unless costs are integral."""
        return is_optimal(self.cost, self.bound, exactly=self._is_whole)

    def run(self, rounds: int | None) -> Iterator[None]:
        """Run the search, yielding control between its steps.

        Args:
            rounds: The maximum number of final annealing rounds, or None for no maximum.
        """
        self.reduction = Reduction(self.problem)
        while True:
            if not self._tabulate():
                return
            yield from self._relax()
            if self.is_over:
                return
            yield from self._anneal(SHORT * len(self.indices.nodes), seed=0)
            if self.is_over:
                return
            if not self._prune():
                break
        if len(self.indices.nodes) <= LARGEST_EXACT:
            self._solve_exactly()
            yield
        length = SHORT * len(self.indices.nodes)
        for seed in count(1) if rounds is None else range(1, rounds + 1):
            if self.is_over:
                return
            yield from self._anneal(length, seed)
            length *= 2

    def _tabulate(self) -> bool:
        """Build the tables of the reduced problem.

        Returns:
            Whether nodes remain.
        """
        if self.reduction.is_contradictory:
            self.bound = self.cost
            return False
        self.tables, self.indices = tabulate(self.reduction, self.problem.horizon, self.problem.limit)
        if (self.indices.capacity < 0).any():
            self.bound = self.cost
            self.short_at = int(self.indices.capacity.argmin())
            self.excessive = self._least_at(self.short_at)
            return False
        if not self.indices.nodes:
            self._offer(np.zeros(0, np.int64))
            self.bound = self.cost
        return bool(self.indices.nodes)

    def _least_at(self, time: int) -> Assignment:
        """Return an assignment, possibly a forbidden one, with the least memory at a time."""
        strategies = {
            name: int(np.argmin(np.where(node.is_allowed, memory_at(node.items, node.costs.size, time), HUGE)))
            for name, node in self.reduction.nodes.items()
        }
        return self.reduction.expand(strategies, len(self.problem.costs))

    def _offer(self, strategies: Ints) -> None:
        """Record table strategies if they are the best so far."""
        over = usage_in(self.tables, strategies) - self.tables.capacity
        excess = float(np.maximum(over, 0).astype(np.float64).sum())
        if excess == 0 and cost_in(self.tables, strategies) + self.reduction.offset >= self.cost:
            return
        if excess > 0 and (self.assignment is not None or excess >= self.excess):
            return
        assignment = self.reduction.expand(self.indices.to_problem(strategies), len(self.problem.costs))
        cost = cost_of(self.problem, assignment)
        if not np.isfinite(cost):
            return
        if excess > 0:
            self.excess, self.excessive = excess, assignment
        elif cost < self.cost:
            self.cost, self.assignment = cost, assignment

    def _raise_bound(self, bound: float, slack: float = 1e-9) -> None:
        bound += self.reduction.offset
        bound -= slack * abs(bound)
        if self._is_whole:
            bound = float(np.ceil(bound))
        self.bound = max(self.bound, min(bound, self.cost))

    def _relax(self) -> Iterator[None]:
        """Run the Lagrangian relaxation, for a bound and first assignments."""
        relaxation = self.relaxation = Relaxation(self.tables, self._multipliers())
        relaxation.ascend(0.0, 1, lambda: True)
        start = self._start()
        self._offer(start)
        yield
        if self.assignment is None:
            yield from self._repair(start)
        upper = self.cost - self.reduction.offset if self.assignment is not None else cost_in(self.tables, start)
        until = monotonic() + RELAXING * (self.deadline - monotonic())
        relaxation.ascend(upper, ASCENT, lambda: monotonic() < until)
        self._raise_bound(relaxation.bound)
        self._prices = dict(zip(self.indices.times.tolist(), relaxation.multipliers.tolist(), strict=True))
        for strategies in (relaxation.feasible, relaxation.strategies):
            if strategies is not None:
                self._offer(strategies)
        yield

    def _multipliers(self) -> Floats:
        """Return the best multipliers so far, each at the nearest time of the tables."""
        multipliers = np.zeros(self.indices.times.size)
        if self._prices and multipliers.size:
            places = np.searchsorted(self.indices.times, list(self._prices)).clip(max=multipliers.size - 1)
            np.add.at(multipliers, places, list(self._prices.values()))
        return multipliers

    def _start(self) -> Ints:
        """Return the best assignment so far as table strategies; those of the relaxation where they were pruned."""
        known = self.assignment if self.assignment is not None else self.excessive
        strategies = self.relaxation.strategies.copy()
        if known is not None:
            for i, (node, options) in enumerate(zip(self.indices.nodes, self.indices.strategies, strict=True)):
                matches = np.flatnonzero(options == known[node])
                if matches.size:
                    strategies[i] = matches[0]
        return strategies

    def _repair(self, strategies: Ints) -> Iterator[None]:
        """Raise the price of memory at times above the limit until an assignment is feasible."""
        tables = self.tables
        multipliers = np.zeros(tables.capacity.size)
        price = 1e-3 * max(abs(cost_in(tables, strategies)), 1e-9) / float(max(tables.capacity.max(initial=1), 1))
        for attempt in range(REPAIRS):
            multipliers += price * (usage_in(tables, strategies) > tables.capacity)
            price *= 2
            priced = priced_costs(tables, multipliers)
            temperature = 1e-6 * float(np.ptp(priced)) + 1e-12
            strategies = anneal(
                tables, priced, strategies, temperature, temperature, 10 * len(strategies), 8, attempt
            ).best
            self._offer(strategies)
            yield
            if self.assignment is not None or self.is_over:
                return

    def _anneal(self, length: int, seed: int) -> Iterator[None]:
        """Anneal from the best assignment for `length` steps with Lagrangian prices, and then without."""
        tables = self.tables
        strategies = self._start()
        known = self.cost if self.assignment is not None else cost_in(tables, strategies) + self.reduction.offset
        gap = max(known - self.bound, 1e-9 * abs(known)) or 1.0
        hot = HEAT[seed % len(HEAT)] * gap / len(strategies) ** 0.5
        priced = priced_costs(tables, self.relaxation.multipliers)
        pieces = max(PIECES, length // LONGEST_PIECE)
        for piece in range(pieces):
            temperatures = hot * COLD ** (piece / pieces), hot * COLD ** ((piece + 1) / pieces)
            result = anneal(tables, priced, strategies, *temperatures, length // pieces, BLOCK, pieces * seed + piece)
            strategies = result.last
            self._offer(result.best)
            yield
            if self.is_over:
                return
        cold = hot * COLD / 10
        for piece in range(pieces // 4):
            result = anneal(tables, tables.costs, self._start(), cold, cold, length // pieces, BLOCK, piece + seed)
            self._offer(result.best)
            yield
            if self.is_over:
                return

    def _prune(self) -> bool:
        """Prune strategies whose lower bound exceeds the best cost, if they are many, and reduce again.

        Returns:
            Whether strategies were pruned.
        """
        if self.assignment is None:
            return False
        is_forbidden = self.relaxation.prunable(self.cost - self.reduction.offset)
        self._raise_bound(self.relaxation.bound)
        if is_forbidden.mean() < WORTH_IT:
            return False
        for i, (node, options) in enumerate(zip(self.indices.nodes, self.indices.strategies, strict=True)):
            forbidden = np.zeros(self.problem.costs[node].size, np.bool_)
            forbidden[options[is_forbidden[self.tables.nodes[i] : self.tables.nodes[i + 1]]]] = True
            self.reduction.forbid(node, forbidden)
        self.reduction.settle()
        return True

    def _solve_exactly(self) -> None:
        """Run branch and bound on the tables."""
        upper = self.cost - self.reduction.offset if self.assignment is not None else self.tables.forbidden
        seconds = EXACTLY * (self.deadline - monotonic())
        answer = solve_exactly(self.tables, upper, self.relaxation.multipliers, seconds)
        if answer.strategies is not None:
            self._offer(answer.strategies)
        if self.assignment is None and answer.bound >= upper:
            self.bound = np.inf
        self._raise_bound(answer.bound, slack=0.0)
