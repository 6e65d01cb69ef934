"""The solver: from a problem to a solution, in the time that is given."""

from collections.abc import Callable
from contextlib import suppress
from time import monotonic

import numpy as np

from sdy.passes.auto.solver.problem import Problem, memory_taken, usage_of
from sdy.passes.auto.solver.search import Search
from sdy.passes.auto.solver.solution import Shortage, Solution


def solve(
    problem: Problem,
    time_limit: float,
    *,
    rounds: int | None = None,
    on_progress: Callable[[Solution], None] | None = None,
) -> Solution:
    """The best assignment that is found in `time_limit` seconds, sooner if it is certain that none is better.

    An interrupt (Ctrl-C, or KeyboardInterrupt raised by `on_progress`, which is called again and again with what is
    best so far) ends the search; what is best so far is returned. Work is counted in steps: with `rounds` of annealing
    at most at the end, and a time limit so long that no part of the search is cut short, the same problem has the same
    solution each time.
    """
    search = Search(problem, monotonic() + time_limit)
    with suppress(KeyboardInterrupt):
        for _ in search.run(rounds):
            if on_progress is not None:
                on_progress(_solution(search))
    return _solution(search)


def _solution(search: Search) -> Solution:
    return Solution(search.assignment, search.cost, search.bound, _shortage(search))


def _shortage(search: Search) -> Shortage | None:
    if search.assignment is not None or search.excessive is None:
        return None
    usage = usage_of(search.problem, search.excessive)
    time = int(usage.argmax()) if search.short_at is None else search.short_at
    taken = memory_taken(search.problem, search.excessive, time)
    return Shortage(time, int(usage[time]), tuple(taken), is_proven=bool(np.isposinf(search.bound)))
