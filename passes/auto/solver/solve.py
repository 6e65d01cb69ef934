"""Entry point of the solver."""

from collections.abc import Callable
from contextlib import suppress
from time import monotonic

import numpy as np

from sdy.passes.auto.solver.problem import Problem, memory_by_node, usage_of
from sdy.passes.auto.solver.search import Search
from sdy.passes.auto.solver.solution import Shortage, Solution


def solve(
    problem: Problem,
    time_limit: float,
    *,
    rounds: int | None = None,
    on_progress: Callable[[Solution], None] | None = None,
) -> Solution:
    """Search for the best assignment until it is proven optimal or the time is up.

    An interrupt (Ctrl-C, or KeyboardInterrupt raised by `on_progress`) ends the search with the best result so far.
    The search is deterministic if `rounds` is given and no part of it reaches the time limit.

    Args:
        problem: The problem.
        time_limit: The maximum duration in seconds.
        rounds: The maximum number of final annealing rounds, or None for no maximum.
        on_progress: Called repeatedly with the best solution so far.

    Returns:
        The best assignment found, with a lower bound; without a feasible assignment, with the memory shortage.
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
    nodes = memory_by_node(search.problem, search.excessive, time)
    return Shortage(time, int(usage[time]), tuple(nodes), is_proven=bool(np.isposinf(search.bound)))
