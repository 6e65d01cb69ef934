"""Solver for strategy selection: minimum-cost assignment on a graph under a memory limit over time.

Each node selects one strategy. Nodes and edges have costs, as in a pairwise Markov random field or weighted constraint
satisfaction problem, and live nodes take memory. The solver is independent of programs and shardings. Its parts run
alternately:

- `reduction`: exact variable elimination. Nodes that their neighbors determine are merged into these. Some hundreds to
  thousands of the ten thousands of nodes of an instance of the IOPDDL contest remain.
- `cost_tables`: the reduced problem as flat arrays for Numba, with the binding times at which memory may be exceeded.
- `relaxation`: Lagrangian relaxation of the memory limit, with lower bounds by message passing (`trws`). Strategies
  whose lower bound exceeds the best known cost are pruned, and the reduction continues.
- `annealing`: local search over trees of nodes, with memory at the Lagrangian prices.
- `exact`: branch and bound by toulbar2, once the problem is small enough.

toulbar2 proves the optimum of reduced instances of 200 to 700 nodes in seconds, with the memory limit at few times
initially; of 4,000 nodes, it does not start to search within a minute. HiGHS takes 5 s for the 227 nodes of instance B,
where toulbar2 takes 0.2 s. If memory binds at many times and there are few strategies, the cuts of HiGHS prove more.
"""

from collections.abc import Callable
from contextlib import suppress
from time import monotonic

import numpy as np

from iopddl_solver.problem import Problem as Problem
from iopddl_solver.problem import memory_by_node, usage_of
from iopddl_solver.search import Search
from iopddl_solver.solution import Shortage as Shortage
from iopddl_solver.solution import Solution as Solution


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
