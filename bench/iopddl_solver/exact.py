"""Branch and bound for small problems, by toulbar2 in a subprocess."""

import pickle
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from iopddl_solver.cost_tables import Floats, Ints, Tables
from iopddl_solver.evaluation import usage_in

WORKER = Path(__file__).with_name("toulbar2_worker.py")
FEW_TIMES = 200
"""Maximum number of times at which all memory limits are passed at once; with more, they are added lazily."""
FIRST_TIMES = 40
"""Maximum number of initial memory limits when they are added lazily."""
MORE_TIMES = 8
"""Maximum number of violated memory limits that are added per round."""
SHORTEST = 0.2
"""Minimum seconds left for which the worker is started."""
GRACE = 2.0
"""Seconds that the worker has to answer after its time limit."""
EXACT = 2.0**50
"""Integer costs below this are passed exactly, since sums of a few thousands of them do not overflow."""
COARSE = 2.0**36
"""Other costs are rounded down to multiples of a unit; the best known cost is this many units."""


@dataclass(frozen=True)
class Answer:
    """Result of branch and bound.

    Attributes:
        strategies: The optimal strategies, or None if none better than the known cost was found in time.
        bound: A lower bound of the cost; it is the known cost if that is proven optimal.
    """

    strategies: Ints | None
    bound: float


def solve_exactly(tables: Tables, upper: float, multipliers: Floats, seconds: float) -> Answer:
    """Find the cheapest assignment that costs at most `upper`.

    With many times, the problem initially has the memory limits with the largest multipliers; limits that the answer
    violates are added until it violates none, so that it is optimal under all limits.

    Args:
        tables: The problem.
        upper: The best known cost.
        multipliers: The Lagrange multiplier of the memory limit at each time.
        seconds: The time limit.
    """
    costs, pairs, constant, unit = _integer_costs(tables, upper)
    cutoff = int(max(upper - constant, 0) / unit) + 1
    times = list(range(multipliers.size))
    if len(times) > FEW_TIMES:
        dearest = np.argsort(-multipliers, kind="stable")[:FIRST_TIMES]
        times = [int(time) for time in dearest if multipliers[time] > 0]
    bound = -np.inf
    seconds_left = seconds
    while seconds_left > SHORTEST:
        problem = {
            "costs": [np.minimum(values, cutoff).tolist() for values in costs],
            "pairs": [(i, j, np.minimum(values, cutoff).tolist()) for i, j, values in pairs],
            "limits": [(_usage_at(tables, time), int(tables.capacity[time])) for time in times],
            "cutoff": cutoff,
            "seconds": max(int(seconds_left), 1),
        }
        answer = _run_worker(problem, seconds_left)
        if answer is None:
            break
        strategies, integer_bound, used = answer
        seconds_left -= used
        bound = max(bound, min(integer_bound * unit + constant, upper))
        if strategies is None:
            break
        strategies = np.array(strategies, np.int64)
        over = usage_in(tables, strategies) - tables.capacity
        if over.max(initial=0) <= 0:
            return Answer(strategies, bound)
        for _ in range(MORE_TIMES):
            worst = int(over.argmax())
            if over[worst] <= 0:
                break
            times.append(worst)
            apart = over.size // 100
            over[max(worst - apart, 0) : worst + apart + 1] = 0
    return Answer(None, bound)


def _integer_costs(tables: Tables, upper: float) -> tuple[list[Ints], list[tuple[int, int, Ints]], float, float]:
    """Return the costs of nodes and of edges as nonnegative integers, the subtracted constant, and the unit."""
    constant = 0.0
    nodes: list[Floats] = []
    pairs: list[tuple[int, int, Floats]] = []
    for i, (start, end) in enumerate(pairwise(tables.nodes.tolist())):
        costs = tables.costs[start:end]
        constant += float(costs.min())
        nodes.append(costs - costs.min())
        for arc in range(tables.arcs[i], tables.arcs[i + 1]):
            j = int(tables.others[arc])
            if i < j:
                matrix = tables.matrices[tables.entries[arc] : tables.entries[arc + 1]]
                constant += float(matrix.min())
                pairs.append((i, j, matrix - matrix.min()))
    is_integral = all((values == np.floor(values)).all() for values in (tables.costs, tables.matrices))
    reach = max(upper - constant, 1e-9 * max(abs(upper), abs(constant), 1e-200))
    unit = 1.0 if is_integral and reach < EXACT else reach / COARSE
    return (
        [_floor(costs, unit) for costs in nodes],
        [(i, j, _floor(matrix, unit)) for i, j, matrix in pairs],
        constant,
        unit,
    )


def _floor(costs: Floats, unit: float) -> Ints:
    return np.floor(np.minimum(costs, 2.0**60 * unit) / unit).astype(np.int64)


def _usage_at(tables: Tables, time: int) -> list[tuple[int, int, int]]:
    """Return the nodes and strategies that take memory at a time, each with its memory."""
    usage: list[tuple[int, int, int]] = []
    for i, (start, end) in enumerate(pairwise(tables.items.tolist())):
        memory = np.zeros(tables.nodes[i + 1] - tables.nodes[i], np.int64)
        for item in start + np.flatnonzero((tables.starts[start:end] <= time) & (time < tables.ends[start:end])):
            memory += tables.memory[tables.item_entries[item] : tables.item_entries[item + 1]]
        usage += [(i, int(s), int(memory[s])) for s in np.flatnonzero(memory)]
    return usage


def _run_worker(problem: Mapping[str, object], seconds: float) -> tuple[list[int] | None, float, float] | None:
    """Return the worker's strategies, lower bound and seconds, or None if it did not answer in time."""
    worker = subprocess.Popen(
        [sys.executable, WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        try:
            output, _ = worker.communicate(pickle.dumps(problem), timeout=seconds)
            was_stopped = False
        except subprocess.TimeoutExpired:
            worker.send_signal(signal.SIGVTALRM)  # toulbar2 then stops and reports its best solution
            output, _ = worker.communicate(timeout=GRACE)
            was_stopped = True
    except subprocess.TimeoutExpired:
        return None
    finally:
        worker.kill()
        worker.wait()
    answer = pickle.loads(output) if output else None
    return None if answer is None or (was_stopped and answer[0] is None) else answer
