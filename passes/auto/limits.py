"""Limits of a search: a budget of work, a deadline, and interrupts.

The budget is what ends a search that does not converge. Work is counted, not timed, so that the same program has the
same plan on every machine. A deadline or an interrupt ends the search earlier, with the best layout so far.
"""

import math
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Literal

Limit = Literal["budget", "time limit", "interrupt"]

BUDGET = 24_000_000
"""Maximum work of a search, in visits of an operation by propagation. A core does about 0.9 million of them a second,
with what an estimate adds to them."""

_SEARCHING = 0.8
"""Fraction of the time limit for the search; the rest is for partitioning the best layouts."""


class LimitReachedError(Exception):
    """A limit of the search is reached."""


class Limits:
    """The limits of one call of `sdy.auto`.

    Args:
        seconds: The time limit, from now on; by default none.
        budget: The work after which the search ends.
    """

    def __init__(self, seconds: float | None = None, budget: int | None = None) -> None:
        now, limit = time.monotonic(), math.inf if seconds is None else seconds
        self._search_deadline = now + _SEARCHING * limit
        self._deadline = now + limit
        self._budget = BUDGET if budget is None else budget
        self._lifted = False
        self.reached: Limit | None = None
        """The limit that ended the search, or None if it converged."""

    def check(self, work: int) -> None:
        """Raise if the search is over after this much work.

        Raises:
            LimitReachedError: A limit of the search is reached.
        """
        if self._lifted:
            return
        if self.reached is None:
            if work > self._budget:
                self.reached = "budget"
            elif time.monotonic() > self._search_deadline:
                self.reached = "time limit"
        if self.reached is not None:
            raise LimitReachedError

    def check_deadline(self) -> None:
        """Raise if the time limit of the whole call has passed.

        Raises:
            LimitReachedError: The time limit has passed.
        """
        if time.monotonic() > self._deadline:
            self.reached = "time limit"
            raise LimitReachedError

    @contextmanager
    def obeyed(self) -> Generator[None]:
        """Return a context that ends when a limit is reached or at an interrupt."""
        try:
            yield
        except LimitReachedError:
            pass
        except KeyboardInterrupt:
            self.reached = "interrupt"

    @contextmanager
    def lifted(self) -> Generator[None]:
        """Return a context in which `check` does not raise."""
        self._lifted = True
        try:
            yield
        finally:
            self._lifted = False
