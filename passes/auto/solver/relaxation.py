"""The prices of memory at each time under which the least that can be paid is most: a lower bound, and a guide."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sdy.passes.auto.solver.measures import cost_in, priced_costs, usage_in
from sdy.passes.auto.solver.messages import message_entries, pass_messages, ranked
from sdy.passes.auto.solver.tables import Floats, Ints, Tables

FIRST_PASSES = 10
"""Before memory gets prices, messages settle."""
PATIENCE = 30
"""After so many steps, steps become shorter or longer, where they raised the bound by little or much."""
LITTLE = 1e-4
"""Of the known cost."""
MUCH = 0.02
"""Of the way to it."""
FIRST_LENGTH = 0.03
LONGER = 1.5
SHORTER = 0.8
SHORTEST = 1e-5
"""Steps are so much of what would reach the known cost if all else were straight."""
NOTHING = 1e-24
"""What is left, squared, of a direction in which nothing is missing any more."""


@dataclass
class Relaxation:
    """Memory that is short costs its multiplier; without limits, messages bound the sum of costs from below."""

    tables: Tables
    multipliers: Floats
    """Where to start from, and the best that were found."""
    bound: float = -np.inf
    """No assignment of the tables costs less."""
    chosen: Ints = field(init=False)
    """What is best, or nearly so, at prices that were tried."""
    feasible: Ints | None = None
    """The cheapest of those assignments for which memory suffices."""

    def __post_init__(self):
        tables = self.tables
        self._order = ranked(tables)
        self._rank = np.argsort(self._order)
        self._entries = message_entries(tables)
        self._messages = np.zeros(self._entries[-1])
        self._excess = np.zeros(tables.costs.size)
        self.chosen = np.zeros(self._order.size, np.int64)

    def ascend(self, upper: float, steps: int, goes_on: Callable[[], bool]) -> None:
        """Raises the bound by at most `steps` steps towards `upper`, the cost of a known assignment."""
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
            over = (usage_in(tables, self.chosen) - tables.capacity) / unit
            if over.max(initial=0) <= 0 and (cost := cost_in(tables, self.chosen)) < least:
                least, self.feasible = cost, self.chosen.copy()
            if step < FIRST_PASSES:
                continue
            direction = 0.7 * direction + 0.3 * over
            taken = np.where((prices <= 0) & (direction < 0), 0, direction)
            norm = float(taken @ taken)
            if norm < NOTHING:
                if not prices.any() and self.bound - before <= 1e-6 * abs(upper):
                    break
                before = self.bound
                continue
            distance = max(min(upper, least) - bound, 1e-3 * abs(upper))
            prices = np.maximum(prices + length * distance / norm / unit * taken, 0)
            waited += 1
            if waited >= PATIENCE:
                gained = self.bound - before
                if gained > MUCH * distance:
                    length *= LONGER
                elif gained < LITTLE * abs(upper):
                    length *= SHORTER
                    prices = self.multipliers
                before, waited = self.bound, 0

    def too_dear(self, upper: float) -> NDArray[np.bool_]:
        """For each strategy of each node, whether all assignments with it cost more than `upper`."""
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
                self.chosen,
                self._excess,
            )
        return bound - float(prices @ self.tables.capacity)
