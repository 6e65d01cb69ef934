"""Local search by annealing: random trees of nodes get the strategies that are best together, but for random noise.

A tree is grown inside the graph so that no further edge joins two of its nodes; then all else being fixed, dynamic
programming finds its best strategies. What the strategies cost is disturbed by noise that falls with the temperature
(Papandreou and Yuille, Perturb-and-MAP Random Fields, 2011), so that the search leaves local optima. If the result
takes too much memory, memory is made dearer where most is missing, and the tree is solved again, a few times.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from sdy.passes.auto.solver.measures import cost_in, usage_in
from sdy.passes.auto.solver.tables import Floats, Ints, Tables

RETRIES = 4


class Found(NamedTuple):
    """The assignments that a search met last, and that was best: of least excess of memory, then of least cost."""

    chosen: Ints
    best: Ints


class Block(NamedTuple):
    """A tree of nodes, each after the node from which it was reached; a row of each array is for one node."""

    nodes: Ints
    up: Ints
    """The arc to the node from which it was reached."""
    place: Ints
    """For each node of the tables its row, or -1."""
    local: Floats
    """What its strategies cost, with the costs of edges out of the tree."""
    below: Floats
    """The same, with the costs of what was reached from it."""
    answers: Ints
    """The best strategy for each strategy of the node from which it was reached."""
    chosen: Ints


@njit(cache=True, nogil=True)
def _grow(tables: Tables, block: Block, size: int) -> int:
    """Fills a block with up to `size` nodes, and returns how many there are."""
    root = np.random.randint(tables.nodes.size - 1)
    block.nodes[0] = root
    block.place[root] = 0
    count = 1
    for _ in range(3 * size):
        if count >= size:
            break
        row = count - 1 if np.random.random() < 0.5 else np.random.randint(count)
        node = block.nodes[row]
        degree = tables.arcs[node + 1] - tables.arcs[node]
        if degree == 0:
            break
        arc = tables.arcs[node] + np.random.randint(degree)
        other = tables.others[arc]
        if block.place[other] >= 0:
            continue
        ties = 0
        for back in range(tables.arcs[other], tables.arcs[other + 1]):
            ties += block.place[tables.others[back]] >= 0
            if ties > 1:
                break
        if ties == 1:
            block.nodes[count] = other
            block.up[count] = tables.backs[arc]
            block.place[other] = count
            count += 1
    return count


@njit(cache=True, nogil=True)
def _look_around(tables: Tables, block: Block, count: int, priced: Floats, chosen: Ints, temperature: float) -> None:
    """Sets the local costs, with noise."""
    for row in range(count):
        node = block.nodes[row]
        first = tables.nodes[node]
        width = tables.nodes[node + 1] - first
        local = block.local[row]
        for s in range(width):
            noise = np.log(-np.log(np.random.random() + 1e-300) + 1e-300)
            local[s] = priced[first + s] + temperature * noise
        for arc in range(tables.arcs[node], tables.arcs[node + 1]):
            other = tables.others[arc]
            if block.place[other] < 0:
                entry = tables.entries[tables.backs[arc]] + chosen[other] * width
                for s in range(width):
                    local[s] += tables.matrices[entry + s]


@njit(cache=True, nogil=True)
def _solve(tables: Tables, block: Block, count: int) -> None:
    """Sets the chosen strategies to the best under the local costs."""
    for row in range(count):
        width = tables.nodes[block.nodes[row] + 1] - tables.nodes[block.nodes[row]]
        block.below[row, :width] = block.local[row, :width]
    for row in range(count - 1, 0, -1):
        node = block.nodes[row]
        width = tables.nodes[node + 1] - tables.nodes[node]
        parent = tables.others[block.up[row]]
        to = block.place[parent]
        entry = tables.entries[tables.backs[block.up[row]]]
        below = block.below[row]
        for r in range(tables.nodes[parent + 1] - tables.nodes[parent]):
            lowest = np.inf
            best = 0
            for s in range(width):
                cost = tables.matrices[entry + s] + below[s]
                if cost < lowest:
                    lowest = cost
                    best = s
            entry += width
            block.below[to, r] += lowest
            block.answers[row, r] = best
    root = block.nodes[0]
    block.chosen[0] = np.argmin(block.below[0, : tables.nodes[root + 1] - tables.nodes[root]])
    for row in range(1, count):
        parent = block.place[tables.others[block.up[row]]]
        block.chosen[row] = block.answers[row, block.chosen[parent]]


@njit(cache=True, nogil=True)
def _change(tables: Tables, block: Block, count: int, chosen: Ints, change: Ints) -> tuple[int, int]:
    """Adds to `change`, from one time to the next, what the chosen strategies change; returns the times it spans."""
    start = change.size
    end = 0
    for row in range(count):
        node = block.nodes[row]
        if block.chosen[row] != chosen[node]:
            for item in range(tables.items[node], tables.items[node + 1]):
                entry = tables.item_entries[item]
                more = tables.memory[entry + block.chosen[row]] - tables.memory[entry + chosen[node]]
                if more != 0:
                    change[tables.starts[item]] += more
                    change[tables.ends[item]] -= more
                    start = min(start, tables.starts[item])
                    end = max(end, tables.ends[item])
    return start, end


@njit(cache=True, nogil=True)
def _excess(change: Ints, slack: Ints, start: int, end: int) -> tuple[int, int, int]:
    """By how much a change raises the excess of memory; the time at which it misses most, and how much."""
    more = 0
    raised = 0
    worst = -1
    missing = 0
    for time in range(start, end):
        more += change[time]
        if more > slack[time] and more > 0:
            raised += more - max(slack[time], 0)
            if more - slack[time] > missing:
                missing = more - slack[time]
                worst = time
        elif more < 0 and slack[time] < 0:
            raised -= min(-more, -slack[time])
    return raised, worst, missing


@njit(cache=True, nogil=True)
def _make_dearer(tables: Tables, block: Block, count: int, time: int, price: float) -> None:
    """Adds to the local costs what memory costs at a time."""
    for row in range(count):
        node = block.nodes[row]
        for item in range(tables.items[node], tables.items[node + 1]):
            if tables.starts[item] <= time < tables.ends[item]:
                entry = tables.item_entries[item]
                for s in range(tables.nodes[node + 1] - tables.nodes[node]):
                    block.local[row, s] += price * tables.memory[entry + s]


@njit(cache=True, nogil=True)
def _difference(tables: Tables, block: Block, count: int, chosen: Ints) -> float:
    """Takes the chosen strategies of the block into `chosen`, whose own go to the block, and returns the cost of it."""
    cost = 0.0
    for row in range(count):
        node = block.nodes[row]
        new, old = block.chosen[row], chosen[node]
        block.chosen[row] = old
        if new == old:
            continue
        cost += tables.costs[tables.nodes[node] + new] - tables.costs[tables.nodes[node] + old]
        for arc in range(tables.arcs[node], tables.arcs[node + 1]):
            other = tables.others[arc]
            width = tables.nodes[other + 1] - tables.nodes[other]
            entry = tables.entries[arc] + chosen[other]
            cost += tables.matrices[entry + new * width] - tables.matrices[entry + old * width]
        chosen[node] = new
    return float(cost)


@njit(cache=True, nogil=True)
def anneal(
    tables: Tables, priced: Floats, start: Ints, hot: float, cold: float, steps: int, size: int, seed: int
) -> Found:
    """The best that `steps` blocks of up to `size` nodes find from `start` on, while the temperature falls.

    Strategies are valued at `priced` costs; what is best is said of their own costs. The excess of memory never rises.
    """
    np.random.seed(seed)
    chosen = start.copy()
    slack = tables.capacity - usage_in(tables, chosen)
    excess = -np.minimum(slack, 0).astype(np.float64).sum()
    cost = cost_in(tables, chosen)
    best = chosen.copy()
    best_cost = cost
    best_excess = excess
    is_best = False
    change = np.zeros(slack.size + 1, np.int64)
    widest = np.max(np.diff(tables.nodes))
    block = Block(
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.full(chosen.size, -1, np.int64),
        np.empty((size, widest)),
        np.empty((size, widest)),
        np.empty((size, widest), np.int64),
        np.empty(size, np.int64),
    )
    for step in range(steps):
        temperature = hot * (cold / hot) ** (step / steps)
        count = _grow(tables, block, int(size ** np.random.random()))
        _look_around(tables, block, count, priced, chosen, temperature)
        for attempt in range(RETRIES):
            _solve(tables, block, count)
            first, last = _change(tables, block, count, chosen, change)
            raised, worst, missing = _excess(change, slack, first, last)
            if raised > 0:
                change[first : last + 1] = 0
                if attempt + 1 < RETRIES and worst >= 0:
                    _make_dearer(tables, block, count, worst, 8.0 * 4.0**attempt * temperature / missing)
                continue
            more = 0
            for time in range(first, last):
                more += change[time]
                slack[time] -= more
            if last > first:
                change[first : last + 1] = 0
            difference = _difference(tables, block, count, chosen)
            if is_best and (raised == 0 and difference > 0):
                best[:] = chosen
                for row in range(count):
                    best[block.nodes[row]] = block.chosen[row]
                is_best = False
            excess += raised
            cost += difference
            if excess < best_excess or (excess == best_excess and cost < best_cost):
                best_excess = excess
                best_cost = cost
                is_best = True
            break
        for row in range(count):
            block.place[block.nodes[row]] = -1
    if is_best:
        best[:] = chosen
    return Found(chosen, best)
