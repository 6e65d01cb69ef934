"""The optimum of a small problem by branch and bound, which toulbar2 does in a process of its own."""

import pickle
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from sdy.passes.auto.solver.measures import usage_in
from sdy.passes.auto.solver.tables import Floats, Ints, Tables

WORKER = Path(__file__).with_name("toulbar2_worker.py")
FEW_TIMES = 200
"""Memory is limited at all times if these are so few, else at first at a part of them."""
FIRST_TIMES = 40
"""At so many times, at most, memory is limited at first; where it then does not suffice, times are added."""
MORE_TIMES = 8
SHORTEST = 0.2
"""Seconds for which the worker is worth starting."""
GRACE = 2.0
"""Seconds after its time in which the worker may still answer."""
EXACT = 2.0**50
"""Whole numbers below this, and sums of a few thousands of them, are passed on as they are."""
COARSE = 2.0**36
"""Other costs are rounded down to multiples of some unit, of which the best known cost has so many."""


@dataclass(frozen=True)
class Answer:
    """What branch and bound found: nothing is cheaper than `bound`, which is the known cost if nothing is better."""

    chosen: Ints | None
    bound: float


def solve_exactly(tables: Tables, upper: float, multipliers: Floats, seconds: float) -> Answer:
    """The cheapest assignment of `tables` that costs at most `upper`, as far as it is found in time.

    If times are many, memory is limited at those that `multipliers` say to be the dearest, and then at those at which
    the answer takes too much: an answer that does not is the best at all times.
    """
    costs, pairs, constant, unit = _whole_costs(tables, upper)
    cutoff = int(max(upper - constant, 0) / unit) + 1
    times = list(range(multipliers.size))
    if len(times) > FEW_TIMES:
        dearest = np.argsort(-multipliers, kind="stable")[:FIRST_TIMES]
        times = [int(time) for time in dearest if multipliers[time] > 0]
    bound = -np.inf
    left = seconds
    while left > SHORTEST:
        problem = {
            "costs": [np.minimum(values, cutoff).tolist() for values in costs],
            "pairs": [(i, j, np.minimum(values, cutoff).tolist()) for i, j, values in pairs],
            "limits": [(_taken_at(tables, time), int(tables.capacity[time])) for time in times],
            "cutoff": cutoff,
            "seconds": max(int(left), 1),
        }
        answer = _ask(problem, left)
        if answer is None:
            break
        chosen, whole_bound, used = answer
        left -= used
        bound = max(bound, min(whole_bound * unit + constant, upper))
        if chosen is None:
            break
        chosen = np.array(chosen, np.int64)
        over = usage_in(tables, chosen) - tables.capacity
        if over.max(initial=0) <= 0:
            return Answer(chosen, bound)
        for _ in range(MORE_TIMES):
            worst = int(over.argmax())
            if over[worst] <= 0:
                break
            times.append(worst)
            apart = over.size // 100
            over[max(worst - apart, 0) : worst + apart + 1] = 0
    return Answer(None, bound)


def _whole_costs(tables: Tables, upper: float) -> tuple[list[Ints], list[tuple[int, int, Ints]], float, float]:
    """Costs of nodes and of pairs of them as whole numbers of a unit, from 0 up, and the constant without these."""
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
    is_whole = all((values == np.floor(values)).all() for values in (tables.costs, tables.matrices))
    reach = max(upper - constant, 1e-9 * max(abs(upper), abs(constant), 1e-200))
    unit = 1.0 if is_whole and reach < EXACT else reach / COARSE
    return (
        [_floor(costs, unit) for costs in nodes],
        [(i, j, _floor(matrix, unit)) for i, j, matrix in pairs],
        constant,
        unit,
    )


def _floor(costs: Floats, unit: float) -> Ints:
    return np.floor(np.minimum(costs, 2.0**60 * unit) / unit).astype(np.int64)


def _taken_at(tables: Tables, time: int) -> list[tuple[int, int, int]]:
    """Each node and strategy of it that takes memory at a time, and how much."""
    taken: list[tuple[int, int, int]] = []
    for i, (start, end) in enumerate(pairwise(tables.items.tolist())):
        memory = np.zeros(tables.nodes[i + 1] - tables.nodes[i], np.int64)
        for item in start + np.flatnonzero((tables.starts[start:end] <= time) & (time < tables.ends[start:end])):
            memory += tables.memory[tables.item_entries[item] : tables.item_entries[item + 1]]
        taken += [(i, int(s), int(memory[s])) for s in np.flatnonzero(memory)]
    return taken


def _ask(problem: Mapping[str, object], seconds: float) -> tuple[list[int] | None, float, float] | None:
    """The worker's answer: strategies, a bound, and seconds; None if it found none in time."""
    worker = subprocess.Popen(
        [sys.executable, WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        try:
            output, _ = worker.communicate(pickle.dumps(problem), timeout=seconds)
            was_stopped = False
        except subprocess.TimeoutExpired:
            worker.send_signal(signal.SIGVTALRM)  # toulbar2 then ends with what it has
            output, _ = worker.communicate(timeout=GRACE)
            was_stopped = True
    except subprocess.TimeoutExpired:
        return None
    finally:
        worker.kill()
        worker.wait()
    answer = pickle.loads(output) if output else None
    return None if answer is None or (was_stopped and answer[0] is None) else answer
