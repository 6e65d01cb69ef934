"""Simulated annealing with tree-block moves.

A move grows a random induced tree in the graph and, with all other nodes fixed, optimizes the strategies of its nodes
by dynamic programming. Noise on the costs, proportional to the temperature, lets the search leave local optima
(Papandreou and Yuille, Perturb-and-MAP Random Fields, 2011). If the result exceeds the memory limit, the move raises
the price of memory at the time of the largest excess and solves the tree again, a few times.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from iopddl_solver.cost_tables import Floats, Ints, Tables
from iopddl_solver.evaluation import cost_in, usage_in

RETRIES = 4


class AnnealingResult(NamedTuple):
    """The last and the best assignment of a run; the best has the least memory excess, and then the least cost."""

    last: Ints
    best: Ints


class Block(NamedTuple):
    """A tree of nodes, with a row per node; parents come before children."""

    nodes: Ints
    up: Ints
    """The arc to the parent."""
    place: Ints
    """The row of each node of the tables, or -1."""
    local: Floats
    """The costs of its strategies, including edges to nodes outside the tree."""
    below: Floats
    """The costs of its strategies, including the optimal subtrees below."""
    answers: Ints
    """Its best strategy for each strategy of the parent."""
    strategies: Ints


@njit(cache=True, nogil=True)
def _grow_tree(tables: Tables, block: Block, size: int) -> int:
    """Fill a block with a random induced tree of up to `size` nodes, and return the number of its nodes."""
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
def _set_local_costs(
    tables: Tables, block: Block, count: int, priced: Floats, strategies: Ints, temperature: float
) -> None:
    """Set the local costs of a block, with noise."""
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
                entry = tables.entries[tables.backs[arc]] + strategies[other] * width
                for s in range(width):
                    local[s] += tables.matrices[entry + s]


@njit(cache=True, nogil=True)
def _solve_tree(tables: Tables, block: Block, count: int) -> None:
    """Set the strategies of a block to the optimum under the local costs, by dynamic programming."""
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
    block.strategies[0] = np.argmin(block.below[0, : tables.nodes[root + 1] - tables.nodes[root]])
    for row in range(1, count):
        parent = block.place[tables.others[block.up[row]]]
        block.strategies[row] = block.answers[row, block.strategies[parent]]


@njit(cache=True, nogil=True)
def _memory_change(tables: Tables, block: Block, count: int, strategies: Ints, change: Ints) -> tuple[int, int]:
    """Add the memory changes of a block's strategies to `change`, as differences over time.

    Returns:
        The first time that changes, and the one after the last.
    """
    start = change.size
    end = 0
    for row in range(count):
        node = block.nodes[row]
        if block.strategies[row] != strategies[node]:
            for item in range(tables.items[node], tables.items[node + 1]):
                entry = tables.item_entries[item]
                more = tables.memory[entry + block.strategies[row]] - tables.memory[entry + strategies[node]]
                if more != 0:
                    change[tables.starts[item]] += more
                    change[tables.ends[item]] -= more
                    start = min(start, tables.starts[item])
                    end = max(end, tables.ends[item])
    return start, end


@njit(cache=True, nogil=True)
def _excess(change: Ints, slack: Ints, start: int, end: int) -> tuple[int, int, int]:
    """Return by how much a change raises the total memory excess, the time of the largest excess, and its amount."""
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
def _raise_price(tables: Tables, block: Block, count: int, time: int, price: float) -> None:
    """Add the price of memory at a time to the local costs of a block."""
    for row in range(count):
        node = block.nodes[row]
        for item in range(tables.items[node], tables.items[node + 1]):
            if tables.starts[item] <= time < tables.ends[item]:
                entry = tables.item_entries[item]
                for s in range(tables.nodes[node + 1] - tables.nodes[node]):
                    block.local[row, s] += price * tables.memory[entry + s]


@njit(cache=True, nogil=True)
def _apply(tables: Tables, block: Block, count: int, strategies: Ints) -> float:
    """Swap the strategies of the block with those in `strategies`, and return the difference in cost."""
    cost = 0.0
    for row in range(count):
        node = block.nodes[row]
        new, old = block.strategies[row], strategies[node]
        block.strategies[row] = old
        if new == old:
            continue
        cost += tables.costs[tables.nodes[node] + new] - tables.costs[tables.nodes[node] + old]
        for arc in range(tables.arcs[node], tables.arcs[node + 1]):
            other = tables.others[arc]
            width = tables.nodes[other + 1] - tables.nodes[other]
            entry = tables.entries[arc] + strategies[other]
            cost += tables.matrices[entry + new * width] - tables.matrices[entry + old * width]
        strategies[node] = new
    return float(cost)


@njit(cache=True, nogil=True)
def anneal(
    tables: Tables, priced: Floats, start: Ints, hot: float, cold: float, steps: int, size: int, seed: int
) -> AnnealingResult:
    """Run `steps` moves from `start`, with geometrically falling temperature. The memory excess never rises.

    Args:
        tables: The problem.
        priced: The costs of strategies, including Lagrangian prices of memory, that moves optimize.
        start: The initial strategies.
        hot: The initial temperature.
        cold: The final temperature.
        steps: The number of moves.
        size: The maximum number of nodes of a tree.
        seed: The seed of the random number generator.

    Returns:
        The last assignment, and the best one by its costs without prices.
    """
    np.random.seed(seed)
    strategies = start.copy()
    slack = tables.capacity - usage_in(tables, strategies)
    excess = -np.minimum(slack, 0).astype(np.float64).sum()
    cost = cost_in(tables, strategies)
    best = strategies.copy()
    best_cost = cost
    best_excess = excess
    is_best = False
    change = np.zeros(slack.size + 1, np.int64)
    widest = np.max(np.diff(tables.nodes))
    block = Block(
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.full(strategies.size, -1, np.int64),
        np.empty((size, widest)),
        np.empty((size, widest)),
        np.empty((size, widest), np.int64),
        np.empty(size, np.int64),
    )
    for step in range(steps):
        temperature = hot * (cold / hot) ** (step / steps)
        count = _grow_tree(tables, block, int(size ** np.random.random()))
        _set_local_costs(tables, block, count, priced, strategies, temperature)
        for attempt in range(RETRIES):
            _solve_tree(tables, block, count)
            first, last = _memory_change(tables, block, count, strategies, change)
            raised, worst, missing = _excess(change, slack, first, last)
            if raised > 0:
                change[first : last + 1] = 0
                if attempt + 1 < RETRIES and worst >= 0:
                    _raise_price(tables, block, count, worst, 8.0 * 4.0**attempt * temperature / missing)
                continue
            more = 0
            for time in range(first, last):
                more += change[time]
                slack[time] -= more
            if last > first:
                change[first : last + 1] = 0
            difference = _apply(tables, block, count, strategies)
            if is_best and (raised == 0 and difference > 0):
                best[:] = strategies
                for row in range(count):
                    best[block.nodes[row]] = block.strategies[row]
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
        best[:] = strategies
    return AnnealingResult(strategies, best)
