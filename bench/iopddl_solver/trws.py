"""Lower bounds by sequential tree-reweighted message passing (TRW-S).

See V. Kolmogorov, Convergent Tree-Reweighted Message Passing for Energy Minimization, 2006. Chains of nodes with
increasing ranks cover the graph. A pass over all nodes, in increasing or decreasing rank, averages the min-marginals
of each node over its chains. It never lowers the bound, which is the sum of the minimum costs of the chains.
"""

from heapq import heapify, heappop, heappush

import numpy as np
from numba import njit

from iopddl_solver.cost_tables import Floats, Ints, Tables


def ranked(tables: Tables) -> Ints:
    """Order the nodes greedily: the next node is one with the fewest neighbors that are not ordered yet."""
    degrees = np.diff(tables.arcs).tolist()
    waiting = [(degree, node) for node, degree in enumerate(degrees)]
    heapify(waiting)
    order: list[int] = []
    is_ranked = [False] * len(degrees)
    while waiting:
        degree, node = heappop(waiting)
        if is_ranked[node] or degree != degrees[node]:
            continue
        is_ranked[node] = True
        order.append(node)
        for other in tables.others[tables.arcs[node] : tables.arcs[node + 1]].tolist():
            if not is_ranked[other]:
                degrees[other] -= 1
                heappush(waiting, (degrees[other], other))
    return np.array(order, np.int64)


def message_entries(tables: Tables) -> Ints:
    """Return the offset of each arc's incoming message in the array of messages."""
    sizes = np.repeat(np.diff(tables.nodes), np.diff(tables.arcs))
    return np.cumsum(np.concatenate([[0], sizes]), dtype=np.int64)


@njit(cache=True, nogil=True)
def pass_messages(
    tables: Tables,
    priced: Floats,
    order: Ints,
    rank: Ints,
    entries: Ints,
    messages: Floats,
    upwards: bool,
    strategies: Ints,
    excess: Floats,
) -> float:
    """Update `messages` by a pass over the nodes, and return the lower bound, which is valid for downward passes.

    Args:
        tables: The problem.
        priced: The costs of strategies, including Lagrangian prices of memory.
        order: The nodes by rank.
        rank: The rank of each node.
        entries: The offsets of messages.
        messages: The messages; modified.
        upwards: Whether the pass is in increasing rank.
        strategies: Set to a good assignment under `priced`.
        excess: Set to the increase of the previous pass's bound if a strategy is selected.
    """
    bound = 0.0
    widest = 0
    for i in range(order.size):
        widest = max(widest, tables.nodes[i + 1] - tables.nodes[i])
    belief = np.empty(widest)
    conditional = np.empty(widest)
    sent = np.empty(widest)
    for step in range(order.size):
        i = order[step] if upwards else order[order.size - 1 - step]
        first = tables.nodes[i]
        width = tables.nodes[i + 1] - first
        for s in range(width):
            belief[s] = priced[first + s]
        above = 0
        for arc in range(tables.arcs[i], tables.arcs[i + 1]):
            above += rank[tables.others[arc]] > rank[i]
            for s in range(width):
                belief[s] += messages[entries[arc] + s]
        share = 1.0 / max(above, tables.arcs[i + 1] - tables.arcs[i] - above, 1)

        # Select the best strategy given the strategies selected earlier in this pass.
        for s in range(width):
            conditional[s] = belief[s]
        for arc in range(tables.arcs[i], tables.arcs[i + 1]):
            j = tables.others[arc]
            if (rank[j] < rank[i]) == upwards:
                row = tables.entries[tables.backs[arc]] + strategies[j] * width
                for s in range(width):
                    conditional[s] += tables.matrices[row + s] - messages[entries[arc] + s]
        strategies[i] = np.argmin(conditional[:width])

        lowest = belief[:width].min()
        bound += lowest
        for s in range(width):
            belief[s] -= lowest
            excess[first + s] = belief[s]
        for arc in range(tables.arcs[i], tables.arcs[i + 1]):
            j = tables.others[arc]
            if (rank[j] > rank[i]) != upwards:
                continue
            other_width = tables.nodes[j + 1] - tables.nodes[j]
            sent[:other_width] = np.inf
            for s in range(width):
                outgoing = share * belief[s] - messages[entries[arc] + s]
                row = tables.entries[arc] + s * other_width
                for r in range(other_width):
                    sent[r] = min(sent[r], outgoing + tables.matrices[row + r])
            lowest = sent[:other_width].min()
            bound += lowest
            to = entries[tables.backs[arc]]
            for r in range(other_width):
                messages[to + r] = sent[r] - lowest
    return bound
