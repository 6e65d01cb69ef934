"""Lagrangian relaxation of the memory limit, solved by subgradient ascent on the multipliers."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from iopddl_solver.cost_tables import Floats, Ints, Tables
from iopddl_solver.evaluation import cost_in, priced_costs, usage_in
from iopddl_solver.trws import message_entries, pass_messages, ranked

FIRST_PASSES = 10
"""Number of initial steps with multipliers of zero, in which message passing converges."""
PATIENCE = 30
"""Number of steps after which the step length is adapted to the progress of the bound."""
LITTLE = 1e-4
"""Progress below this fraction of the known cost shortens the steps."""
MUCH = 0.02
"""Progress above this fraction of the gap lengthens the steps."""
FIRST_LENGTH = 0.03
"""Initial step length, as a fraction of a Polyak step, which would close the gap if the dual function were linear."""
LONGER = 1.5
SHORTER = 0.8
SHORTEST = 1e-5
"""Step length at which the ascent ends."""
NOTHING = 1e-24
"""Squared norm below which a direction is zero."""


@dataclass
class Relaxation:
    """Lagrangian relaxation: memory costs its multiplier at each time, and TRW-S bounds the relaxed problem."""

    tables: Tables
    multipliers: Floats
    """The Lagrange multiplier of the memory limit at each time: the initial, and later the best ones."""
    bound: float = -np.inf
    """The best lower bound of the cost of all assignments."""
    strategies: Ints = field(init=False)
    """An approximate minimizer of the relaxed problem at the last multipliers."""
    feasible: Ints | None = None
    """The cheapest minimizer within the memory limit, or None if there was none yet."""

    def __post_init__(self):
        tables = self.tables
        self._order = ranked(tables)
        self._rank = np.argsort(self._order)
        self._entries = message_entries(tables)
        self._messages = np.zeros(self._entries[-1])
        self._excess = np.zeros(tables.costs.size)
        self.strategies = np.zeros(self._order.size, np.int64)

    def ascend(self, upper: float, steps: int, goes_on: Callable[[], bool]) -> None:
        """Raise the bound by subgradient ascent.

        Args:
            upper: The cost of a known assignment.
            steps: The maximum number of steps.
            goes_on: Called before each step; the ascent ends when it returns false.
        """
        tables = self.tables
        unit = float(max(tables.capacity.max(initial=1), 1))
        prices = self.multipliers
        direction = np.zeros(prices.size)
        least = np.inf
        length, before, waited = FIRST_LENGTH, self.bound, 0
        for step in range(steps):
            if length < SHORTEST or not goes_on():
                break
            bound = self._pass_both_ways(prices)
            if bound > self.bound:
                self.bound, self.multipliers = bound, prices
            over = (usage_in(tables, self.strategies) - tables.capacity) / unit
            if over.max(initial=0) <= 0 and (cost := cost_in(tables, self.strategies)) < least:
                least, self.feasible = cost, self.strategies.copy()
            if step < FIRST_PASSES:
                continue
            direction = 0.7 * direction + 0.3 * over
            projected = np.where((prices <= 0) & (direction < 0), 0, direction)
            norm = float(projected @ projected)
            if norm < NOTHING:
                if not prices.any() and self.bound - before <= 1e-6 * abs(upper):
                    break
                before = self.bound
                continue
            distance = max(min(upper, least) - bound, 1e-3 * abs(upper))
            prices = np.maximum(prices + length * distance / norm / unit * projected, 0)
            waited += 1
            if waited >= PATIENCE:
                gained = self.bound - before
                if gained > MUCH * distance:
                    length *= LONGER
                elif gained < LITTLE * abs(upper):
                    length *= SHORTER
                    prices = self.multipliers
                before, waited = self.bound, 0

    def prunable(self, upper: float) -> NDArray[np.bool_]:
        """Return which strategies can be pruned: no assignment with them costs at most `upper`."""
        before = max(self._pass_both_ways(self.multipliers) for _ in range(FIRST_PASSES))
        self.bound = max(self.bound, before)
        settled = self._pass_both_ways(self.multipliers)
        self._pass_both_ways(self.multipliers)
        return settled + self._excess > upper + 1e-9 * abs(upper)

    def _pass_both_ways(self, prices: Floats) -> float:
        priced = priced_costs(self.tables, prices)
        bound = 0.0
        for upwards in (True, False):
            bound = pass_messages(
                self.tables,
                priced,
                self._order,
                self._rank,
                self._entries,
                self._messages,
                upwards,
                self.strategies,
                self._excess,
            )
        return bound - float(prices @ self.tables.capacity)
