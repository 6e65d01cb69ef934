"""The solver of `bench/iopddl.py`, on problems small enough to try all assignments."""

from importlib import import_module
from itertools import count, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopddl_solver import Problem, Solution, solve
from iopddl_solver.annealing import anneal
from iopddl_solver.cost_tables import binding_times, tabulate
from iopddl_solver.evaluation import cost_in, usage_in
from iopddl_solver.exact import solve_exactly
from iopddl_solver.problem import Assignment, cost_of, usage_of
from iopddl_solver.reduction import Item, Reduction
from iopddl_solver.relaxation import Relaxation
from samples import is_thorough

pytestmark = pytest.mark.skipif(not is_thorough(), reason="serves a bench, and its kernels take a minute to compile")

SECONDS = 300.0
"""Timeout longer than any of these problems, including Numba's compilation."""


def all_assignments(problem: Problem) -> list[Assignment]:
    return [np.array(chosen, np.int64) for chosen in product(*(range(costs.size) for costs in problem.costs))]


def suffices(problem: Problem, assignment: Assignment) -> bool:
    return problem.limit is None or int(usage_of(problem, assignment).max(initial=0)) <= problem.limit


def optimum(problem: Problem) -> float:
    """Return the least cost by trying all assignments, infinite if none is allowed."""
    return min(cost_of(problem, each) if suffices(problem, each) else np.inf for each in all_assignments(problem))


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Draw up to six nodes of up to three strategies, few edges, some forbidden pairs, and a memory limit or none."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    whole = draw(st.booleans())
    forbidden = draw(st.sampled_from([0.0, 0.2, 0.6]))

    def costs(*shape: int):
        values = random.integers(0, 20, shape).astype(np.float64) if whole else random.random(shape)
        return np.where(random.random(shape) < forbidden, np.inf, values)

    nodes = draw(st.integers(1, 6))
    sizes = [int(random.integers(1, 4)) for _ in range(nodes)]
    pairs = [(i, j) for i in range(nodes) for j in range(nodes) if i != j and random.random() < 0.25]
    starts = random.integers(0, 5, nodes)
    return Problem(
        costs=[np.where(np.isinf(each := costs(size)) & (random.random() < 0.7), 1.0, each) for size in sizes],
        memory=[random.integers(0, 10, size) for size in sizes],
        edges=pairs,
        matrices=[costs(sizes[i], sizes[j]) for i, j in pairs],
        lifetimes=[(int(start), int(start + random.integers(0, 5))) for start in starts],
        limit=draw(st.sampled_from([None, 5, 12, 20])),
    )


def chain(nodes: int, strategies: int, limit: int | None = None) -> Problem:
    """Return nodes in a ring with chords, which no reduction solves."""
    random = np.random.default_rng(nodes)
    edges = [(i, (i + step) % nodes) for i in range(nodes) for step in (1, 5, 11)]
    return Problem(
        costs=[random.integers(0, 100, strategies).astype(np.float64) for _ in range(nodes)],
        memory=[random.integers(1, 100, strategies) for _ in range(nodes)],
        edges=edges,
        matrices=[random.integers(0, 100, (strategies, strategies)).astype(np.float64) for _ in edges],
        lifetimes=[(i, i + 10) for i in range(nodes)],
        limit=limit,
    )


@given(problems())
def test_a_reduction_keeps_the_optimum(problem: Problem):
    reduction = Reduction(problem)
    if reduction.is_contradictory:
        assert all(np.isinf(cost_of(problem, each)) for each in all_assignments(problem))
        return
    tables, indices = tabulate(reduction, problem.horizon, problem.limit)
    best = np.inf
    for chosen in product(*(range(size) for size in np.diff(tables.nodes).tolist())):
        left = np.array(chosen, np.int64)
        assignment = reduction.expand(indices.to_problem(left), len(problem.costs))
        cost = cost_in(tables, left) + reduction.offset
        fits = (usage_in(tables, left) <= tables.capacity).all() and not (indices.capacity < 0).any()
        assert fits == suffices(problem, assignment)
        if cost_in(tables, left) < tables.forbidden / 2:
            assert cost == pytest.approx(cost_of(problem, assignment))
            best = min(best, cost if fits else np.inf)
        else:
            assert np.isinf(cost_of(problem, assignment))
    assert best == pytest.approx(optimum(problem))


@given(problems())
def test_relaxation_gives_lower_bounds_and_prunes_no_optimal_strategy(problem: Problem):
    reduction = Reduction(problem)
    least = optimum(problem)
    if np.isinf(least):
        return
    tables, indices = tabulate(reduction, problem.horizon, problem.limit)
    if not indices.nodes:
        return
    relaxation = Relaxation(tables, np.zeros(tables.capacity.size))
    relaxation.ascend(least - reduction.offset, 50, lambda: True)
    is_too_dear = relaxation.prunable(least - reduction.offset)
    assert relaxation.bound + reduction.offset <= least + 1e-6
    for chosen in product(*(range(size) for size in np.diff(tables.nodes).tolist())):
        left = np.array(chosen, np.int64)
        if (usage_in(tables, left) <= tables.capacity).all() and is_too_dear[tables.nodes[:-1] + left].any():
            assert cost_in(tables, left) + reduction.offset > least


@given(problems())
def test_a_small_problem_is_solved(problem: Problem):
    solution = solve(problem, SECONDS, rounds=1)
    least = optimum(problem)
    assert solution.cost == pytest.approx(least)
    assert solution.bound == pytest.approx(least)
    if solution.assignment is None:
        assert np.isinf(least)
    else:
        assert cost_of(problem, solution.assignment) == solution.cost
        assert suffices(problem, solution.assignment)


def test_times_that_say_no_more_than_others_are_left_out():
    items = [Item(0, 4, np.array([0, 5])), Item(2, 8, np.array([0, 5])), Item(6, 9, np.array([0, 5]))]
    capacity = np.array([4, 4, 9, 8, 4, 4, 9, 7, 7])
    assert binding_times(items, capacity).tolist() == [1, 3, 5, 7]


def test_no_time_step_binds_if_memory_always_suffices():
    assert binding_times([Item(0, 4, np.array([1, 5]))], np.full(4, 5)).tolist() == []


def test_a_problem_without_nodes_costs_nothing():
    solution = solve(Problem([], [], [], [], [], limit=3), SECONDS)
    assert (solution.cost, solution.bound) == (0, 0)


def test_branch_and_bound_solves_what_simpler_methods_cannot():
    problem = chain(40, 4, limit=380)
    solution = solve(problem, SECONDS)
    assert solution.is_optimal
    assert solution.assignment is not None
    assert suffices(problem, solution.assignment)


def test_timeout_returns_a_bound_and_a_cost(monkeypatch: pytest.MonkeyPatch):
    problem = chain(1100, 4, limit=390)
    looks = count()
    for module in ("solver", "solver.search"):
        monkeypatch.setattr(import_module(f"sdy.passes.auto.{module}"), "monotonic", lambda: float(next(looks)))
    solution = solve(problem, 200.0)
    assert next(looks) < 1000
    assert solution.assignment is not None
    assert cost_of(problem, solution.assignment) == solution.cost
    assert suffices(problem, solution.assignment)
    assert 0 < solution.bound < solution.cost


def test_nodes_that_need_more_than_there_is_are_told():
    problem = Problem(
        costs=[np.zeros(2), np.zeros(2), np.zeros(1)],
        memory=[np.array([30, 40]), np.array([50, 45]), np.array([20])],
        edges=[(0, 1)],
        matrices=[np.zeros((2, 2))],
        lifetimes=[(0, 6), (4, 8), (7, 9)],
        limit=70,
    )
    solution = solve(problem, SECONDS)
    assert solution.assignment is None
    assert np.isinf(solution.bound)
    shortage = solution.shortage
    assert shortage is not None
    assert (shortage.time, shortage.needed, shortage.nodes, shortage.is_proven) == (4, 75, ((1, 45), (0, 30)), True)


def test_infeasible_memory_limit_due_to_edges_is_reported():
    """Each node alone could use little memory, and each time step would fit, but an edge forbids both together."""
    apart = np.array([[np.inf, 0, 0], [0, np.inf, 0], [0, 0, np.inf]])
    problem = Problem(
        costs=[np.zeros(3)] * 3,
        memory=[np.array([0, 10, 20])] * 3,
        edges=[(0, 1), (1, 2), (0, 2)],
        matrices=[apart] * 3,
        lifetimes=[(0, 2)] * 3,
        limit=29,
    )
    solution = solve(problem, SECONDS, rounds=1)
    assert solution.assignment is None
    assert solution.shortage is not None
    assert solution.shortage.is_proven
    assert solution.shortage.needed == 30


def test_infeasible_problem_without_memory_shortage():
    problem = Problem([np.array([np.inf])], [np.array([1])], [], [], [(0, 1)], limit=5)
    solution = solve(problem, SECONDS)
    assert (solution.assignment, solution.cost, solution.bound) == (None, np.inf, np.inf)
    assert solution.shortage is None


def test_an_interrupt_leaves_the_best_so_far():
    problem = chain(400, 8, limit=300)
    seen: list[Solution] = []

    def interrupt(solution: Solution) -> None:
        seen.append(solution)
        if solution.assignment is not None:
            raise KeyboardInterrupt

    solution = solve(problem, SECONDS, on_progress=interrupt)
    assert solution.assignment is not None
    assert solution.cost == seen[-1].cost
    assert suffices(problem, solution.assignment)


def test_the_same_problem_has_the_same_solution():
    problem = chain(1100, 4, limit=390)
    first, second = (solve(problem, 600.0, rounds=0) for _ in range(2))
    assert first.assignment is not None
    assert second.assignment is not None
    assert first.assignment.tolist() == second.assignment.tolist()
    assert (first.cost, first.bound) == (second.cost, second.bound)


def test_annealing_never_takes_more_memory_than_there_is():
    problem = chain(60, 5, limit=350)
    tables, _ = tabulate(Reduction(problem), problem.horizon, problem.limit)
    start = np.zeros(60, np.int64)
    before = np.maximum(usage_in(tables, start) - tables.capacity, 0).sum()
    found = anneal(tables, tables.costs, start, 10.0, 0.1, 2000, 16, 0)
    assert np.maximum(usage_in(tables, found.last) - tables.capacity, 0).sum() <= before
    assert np.maximum(usage_in(tables, found.best) - tables.capacity, 0).sum() <= before
    assert cost_in(tables, found.best) < cost_in(tables, start)


def test_costs_that_are_no_whole_numbers_are_bounded_from_below():
    problem = chain(16, 4, limit=380)
    fractions = Problem(
        [costs / 7e5 for costs in problem.costs],
        problem.memory,
        problem.edges,
        [matrix / 7e5 for matrix in problem.matrices],
        problem.lifetimes,
        problem.limit,
    )
    whole, fraction = solve(problem, SECONDS), solve(fractions, SECONDS, rounds=0)
    assert fraction.cost * 7e5 == pytest.approx(whole.cost)
    assert fraction.bound <= fraction.cost
    assert fraction.bound == pytest.approx(fraction.cost, rel=1e-6)


def test_branch_and_bound_that_is_stopped_claims_nothing():
    problem = chain(400, 8, limit=300)
    tables, _ = tabulate(Reduction(problem), problem.horizon, problem.limit)
    answer = solve_exactly(tables, tables.forbidden, np.zeros(tables.capacity.size), 0.5)
    assert answer.strategies is None
    assert answer.bound < tables.forbidden


def test_branch_and_bound_says_that_nothing_is_cheaper():
    problem = chain(20, 3)
    reduction = Reduction(problem)
    tables, _ = tabulate(reduction, problem.horizon, problem.limit)
    least = solve(problem, SECONDS).cost - reduction.offset
    answer = solve_exactly(tables, least - 1, np.zeros(0), SECONDS)
    assert answer.strategies is None
    assert answer.bound == least - 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"memory": []}, "1 nodes have costs, 0 have memory and 1 have lifetimes"),
        ({"edges": [(0, 0)]}, "there are 1 edges and 0 matrices"),
        ({"edges": [(0, 0)], "matrices": [np.zeros((1, 1))]}, "an edge joins nodes 0 and 0 of 1"),
        ({"costs": [np.zeros(2)]}, r"node 0 has costs of shape \(2,\) and memory of shape \(1,\)"),
        ({"costs": [np.array([np.nan])]}, "node 0 has a cost that is not a number, or -inf"),
        ({"memory": [np.array([-1])]}, "node 0 has a strategy with negative memory"),
        ({"lifetimes": [(-1, 2)]}, "node 0 is live from time -1, before time 0"),
    ],
)
def test_invalid_problem_is_refused(change: dict[str, object], message: str):
    fields: dict[str, object] = {
        "costs": [np.zeros(1)],
        "memory": [np.zeros(1, np.int64)],
        "edges": [],
        "matrices": [],
        "lifetimes": [(0, 1)],
    }
    with pytest.raises(ValueError, match=message):
        Problem(**(fields | change))  # pyright: ignore[reportArgumentType]
