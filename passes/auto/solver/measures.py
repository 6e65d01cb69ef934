"""What an assignment costs and takes, read from tables by compiled loops."""

import numpy as np
from numba import njit

from sdy.passes.auto.solver.tables import Floats, Ints, Tables


@njit(cache=True, nogil=True)
def cost_in(tables: Tables, chosen: Ints) -> float:
    """The cost of nodes and edges."""
    total = 0.0
    for i in range(chosen.size):
        total += tables.costs[tables.nodes[i] + chosen[i]]
        for arc in range(tables.arcs[i], tables.arcs[i + 1]):
            j = tables.others[arc]
            if i < j:
                width = tables.nodes[j + 1] - tables.nodes[j]
                total += tables.matrices[tables.entries[arc] + chosen[i] * width + chosen[j]]
    return float(total)


@njit(cache=True, nogil=True)
def usage_in(tables: Tables, chosen: Ints) -> Ints:
    """The memory that is taken at each time, besides what every assignment takes."""
    usage = np.zeros(tables.capacity.size + 1, np.int64)
    for i in range(chosen.size):
        for item in range(tables.items[i], tables.items[i + 1]):
            memory = tables.memory[tables.item_entries[item] + chosen[i]]
            usage[tables.starts[item]] += memory
            usage[tables.ends[item]] -= memory
    for time in range(1, usage.size):
        usage[time] += usage[time - 1]
    return usage[:-1]


@njit(cache=True, nogil=True)
def priced_costs(tables: Tables, multipliers: Floats) -> Floats:
    """The costs of strategies where memory is paid for, at a price for each time."""
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
