"""Numba kernels that evaluate the cost and the memory of an assignment."""

import numpy as np
from numba import njit

from iopddl_solver.cost_tables import Floats, Ints, Tables


@njit(cache=True, nogil=True)
def cost_in(tables: Tables, strategies: Ints) -> float:
    """Return the cost of the nodes and edges."""
    total = 0.0
    for i in range(strategies.size):
        total += tables.costs[tables.nodes[i] + strategies[i]]
        for arc in range(tables.arcs[i], tables.arcs[i + 1]):
            j = tables.others[arc]
            if i < j:
                width = tables.nodes[j + 1] - tables.nodes[j]
                total += tables.matrices[tables.entries[arc] + strategies[i] * width + strategies[j]]
    return float(total)


@njit(cache=True, nogil=True)
def usage_in(tables: Tables, strategies: Ints) -> Ints:
    """Return the memory at each time, beyond the minimum of all assignments."""
    usage = np.zeros(tables.capacity.size + 1, np.int64)
    for i in range(strategies.size):
        for item in range(tables.items[i], tables.items[i + 1]):
            memory = tables.memory[tables.item_entries[item] + strategies[i]]
            usage[tables.starts[item]] += memory
            usage[tables.ends[item]] -= memory
    for time in range(1, usage.size):
        usage[time] += usage[time - 1]
    return usage[:-1]


@njit(cache=True, nogil=True)
def priced_costs(tables: Tables, multipliers: Floats) -> Floats:
    """Return the costs of strategies plus their memory at the Lagrangian price of each time."""
    prices = np.zeros(multipliers.size + 1)
    for time in range(multipliers.size):
        prices[time + 1] = prices[time] + multipliers[time]
    priced = tables.costs.copy()
    for i in range(tables.nodes.size - 1):
        first = tables.nodes[i]
        for item in range(tables.items[i], tables.items[i + 1]):
            price = prices[tables.ends[item]] - prices[tables.starts[item]]
            if price > 0:
                for s in range(tables.nodes[i + 1] - first):
                    priced[first + s] += price * tables.memory[tables.item_entries[item] + s]
    return priced
