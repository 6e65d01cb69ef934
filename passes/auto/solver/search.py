"""The search for a good assignment: reduced tables, prices of memory, annealing, and branch and bound."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from time import monotonic

import numpy as np

from sdy.passes.auto.solver.annealing import anneal
from sdy.passes.auto.solver.exact import solve_exactly
from sdy.passes.auto.solver.measures import cost_in, priced_costs, usage_in
from sdy.passes.auto.solver.problem import Assignment, Problem, cost_of
from sdy.passes.auto.solver.reduction import Reduction, memory_at
from sdy.passes.auto.solver.relaxation import Relaxation
from sdy.passes.auto.solver.solution import is_optimal
from sdy.passes.auto.solver.tables import Floats, Ints, Kept, Tables, tabulate

ASCENT = 3000
"""Steps of the relaxation, at most."""
BLOCK = 64
"""Nodes of a block of annealing, at most."""
HEAT = (0.1, 0.3, 0.03)
"""Of the difference of cost and bound for each square root of nodes, the temperatures with which rounds begin."""
COLD = 1e-3
"""Of that, the temperature with which they end."""
RELAXING = 0.3
EXACTLY = 0.7
"""Of the time that is left, what the relaxation takes at most, and what branch and bound takes."""
SHORT = 50
"""Steps of the first round of annealing for each node; each later one is twice as long."""
WORTH_IT = 0.1
"""Of the strategies, so many are too dear at least where another turn of reducing and relaxing is worth it."""
HUGE = np.iinfo(np.int64).max
REPAIRS = 40
PIECES = 40
"""A round of annealing is done in so many pieces at least, between which it can end."""
LONGEST_PIECE = 5000
"""Steps of a piece, if these make more pieces."""
LARGEST_EXACT = 1000
"""Nodes, at most, of a problem that is given to branch and bound."""


@dataclass
class Search:
    """A search that can end at any time: what is best so far is here."""

    problem: Problem
    deadline: float
    assignment: Assignment | None = None
    """The best that is allowed."""
    cost: float = np.inf
    bound: float = -np.inf
    excessive: Assignment | None = None
    """An assignment that takes too much memory, but less too much than others."""
    excess: float = np.inf
    short_at: int | None = None
    """A time at which no assignment takes as little memory as there is, if that is known."""
    tables: Tables = field(init=False)
    kept: Kept = field(init=False)
    reduction: Reduction = field(init=False)
    relaxation: Relaxation = field(init=False)

    def __post_init__(self):
        self._prices: dict[int, float] = {}
        costs = (*self.problem.costs, *self.problem.matrices)
        self._is_whole = all((np.floor(each) == each).all() for each in costs)

    @property
    def is_over(self) -> bool:
        """Whether nothing better can be found, or no time is left."""
        return self.is_settled or monotonic() >= self.deadline

    @property
    def is_settled(self) -> bool:
        """Whether the bound says that nothing is better, or not by much if costs are no whole numbers."""
        return is_optimal(self.cost, self.bound, exactly=self._is_whole)

    def run(self, rounds: int | None) -> Iterator[None]:
        """Searches, with so many rounds of annealing at the end at most; whoever iterates is given turns."""
        self.reduction = Reduction(self.problem)
        while True:
            if not self._tabulate():
                return
            yield from self._relax()
            if self.is_over:
                return
            yield from self._anneal(SHORT * len(self.kept.nodes), seed=0)
            if self.is_over:
                return
            if not self._prune():
                break
        if len(self.kept.nodes) <= LARGEST_EXACT:
            self._solve_exactly()
            yield
        length = SHORT * len(self.kept.nodes)
        for seed in count(1) if rounds is None else range(1, rounds + 1):
            if self.is_over:
                return
            yield from self._anneal(length, seed)
            length *= 2

    def _tabulate(self) -> bool:
        """Makes the tables of what the reduction leaves; whether anything is left to be chosen."""
        if self.reduction.is_contradictory:
            self.bound = self.cost
            return False
        self.tables, self.kept = tabulate(self.reduction, self.problem.horizon, self.problem.limit)
        if (self.kept.capacity < 0).any():
            self.bound = self.cost
            self.short_at = int(self.kept.capacity.argmin())
            self.excessive = self._least_at(self.short_at)
            return False
        if not self.kept.nodes:
            self._offer(np.zeros(0, np.int64))
            self.bound = self.cost
        return bool(self.kept.nodes)

    def _least_at(self, time: int) -> Assignment:
        """An assignment, perhaps a forbidden one, that takes at a time what all take at least."""
        chosen = {
            name: int(np.argmin(np.where(node.is_allowed, memory_at(node.items, node.costs.size, time), HUGE)))
            for name, node in self.reduction.nodes.items()
        }
        return self.reduction.expand(chosen, len(self.problem.costs))

    def _offer(self, chosen: Ints) -> None:
        """Takes an assignment of the tables if it is the best."""
        over = usage_in(self.tables, chosen) - self.tables.capacity
        excess = float(np.maximum(over, 0).astype(np.float64).sum())
        if excess == 0 and cost_in(self.tables, chosen) + self.reduction.offset >= self.cost:
            return
        if excess > 0 and (self.assignment is not None or excess >= self.excess):
            return
        assignment = self.reduction.expand(self.kept.name(chosen), len(self.problem.costs))
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
        """Prices memory, which gives a bound and first assignments."""
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
        self._prices = dict(zip(self.kept.times.tolist(), relaxation.multipliers.tolist(), strict=True))
        for chosen in (relaxation.feasible, relaxation.chosen):
            if chosen is not None:
                self._offer(chosen)
        yield

    def _multipliers(self) -> Floats:
        """Those at which the bound was best, each at the nearest time that the tables have."""
        multipliers = np.zeros(self.kept.times.size)
        if self._prices and multipliers.size:
            places = np.searchsorted(self.kept.times, list(self._prices)).clip(max=multipliers.size - 1)
            np.add.at(multipliers, places, list(self._prices.values()))
        return multipliers

    def _start(self) -> Ints:
        """The best assignment, or the least excessive, as far as the tables hold it; else what messages suggest."""
        known = self.assignment if self.assignment is not None else self.excessive
        chosen = self.relaxation.chosen.copy()
        if known is not None:
            for i, (node, strategies) in enumerate(zip(self.kept.nodes, self.kept.strategies, strict=True)):
                found = np.flatnonzero(strategies == known[node])
                if found.size:
                    chosen[i] = found[0]
        return chosen

    def _repair(self, chosen: Ints) -> Iterator[None]:
        """Makes memory dearer where it is missing, until it suffices."""
        tables = self.tables
        multipliers = np.zeros(tables.capacity.size)
        price = 1e-3 * max(abs(cost_in(tables, chosen)), 1e-9) / float(max(tables.capacity.max(initial=1), 1))
        for attempt in range(REPAIRS):
            multipliers += price * (usage_in(tables, chosen) > tables.capacity)
            price *= 2
            priced = priced_costs(tables, multipliers)
            temperature = 1e-6 * float(np.ptp(priced)) + 1e-12
            chosen = anneal(tables, priced, chosen, temperature, temperature, 10 * len(chosen), 8, attempt).best
            self._offer(chosen)
            yield
            if self.assignment is not None or self.is_over:
                return

    def _anneal(self, length: int, seed: int) -> Iterator[None]:
        """Searches around the best assignment, for so many steps, with memory at its prices; then without these."""
        tables = self.tables
        chosen = self._start()
        known = self.cost if self.assignment is not None else cost_in(tables, chosen) + self.reduction.offset
        gap = max(known - self.bound, 1e-9 * abs(known)) or 1.0
        hot = HEAT[seed % len(HEAT)] * gap / len(chosen) ** 0.5
        priced = priced_costs(tables, self.relaxation.multipliers)
        pieces = max(PIECES, length // LONGEST_PIECE)
        for piece in range(pieces):
            temperatures = hot * COLD ** (piece / pieces), hot * COLD ** ((piece + 1) / pieces)
            found = anneal(tables, priced, chosen, *temperatures, length // pieces, BLOCK, pieces * seed + piece)
            chosen = found.chosen
            self._offer(found.best)
            yield
            if self.is_over:
                return
        cold = hot * COLD / 10
        for piece in range(pieces // 4):
            found = anneal(tables, tables.costs, self._start(), cold, cold, length // pieces, BLOCK, piece + seed)
            self._offer(found.best)
            yield
            if self.is_over:
                return

    def _prune(self) -> bool:
        """Forbids strategies that are too dear, and reduces again, if these are many; whether they are."""
        if self.assignment is None:
            return False
        is_forbidden = self.relaxation.too_dear(self.cost - self.reduction.offset)
        self._raise_bound(self.relaxation.bound)
        if is_forbidden.mean() < WORTH_IT:
            return False
        for i, (node, strategies) in enumerate(zip(self.kept.nodes, self.kept.strategies, strict=True)):
            forbidden = np.zeros(self.problem.costs[node].size, np.bool_)
            forbidden[strategies[is_forbidden[self.tables.nodes[i] : self.tables.nodes[i + 1]]]] = True
            self.reduction.forbid(node, forbidden)
        self.reduction.settle()
        return True

    def _solve_exactly(self) -> None:
        """Gives the tables to branch and bound."""
        upper = self.cost - self.reduction.offset if self.assignment is not None else self.tables.forbidden
        seconds = EXACTLY * (self.deadline - monotonic())
        answer = solve_exactly(self.tables, upper, self.relaxation.multipliers, seconds)
        if answer.chosen is not None:
            self._offer(answer.chosen)
        if self.assignment is None and answer.bound >= upper:
            self.bound = np.inf
        self._raise_bound(answer.bound, slack=0.0)
