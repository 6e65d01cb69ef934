"""A lower bound where memory is paid for: messages between nodes, by sequential tree-reweighted message passing.

After V. Kolmogorov, Convergent Tree-Reweighted Message Passing for Energy Minimization, 2006. The graph is covered by
chains of nodes whose ranks rise. A pass through all nodes, up or down the ranks, averages what the chains of a node
say of its strategies, and never lowers the sum of what the chains cost at least, which is the bound.
"""

from heapq import heapify, heappop, heappush

import numpy as np
from numba import njit

from sdy.passes.auto.solver.tables import Floats, Ints, Tables


def ranked(tables: Tables) -> Ints:
    """The nodes, each before most of its neighbours: again and again one with the fewest that are not ranked yet."""
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
    """Where the message begins that comes along each arc to the node that it belongs to."""
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
    chosen: Ints,
    excess: Floats,
) -> float:
    """Updates `messages` by a pass through the nodes, and returns the bound that a pass downwards gives.

    Sets in `chosen` an assignment that is good under `priced`, and in `excess` by how much each strategy raises the
    bound of the pass before.
    """
    bound = 0.0
    widest = 0
    for i in range(order.size):
        widest = max(widest, tables.nodes[i + 1] - tables.nodes[i])
    belief = np.empty(widest)
    given = np.empty(widest)
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

        # The choice that is best together with the choices made in this pass.
        for s in range(width):
            given[s] = belief[s]
        for arc in range(tables.arcs[i], tables.arcs[i + 1]):
            j = tables.others[arc]
            if (rank[j] < rank[i]) == upwards:
                row = tables.entries[tables.backs[arc]] + chosen[j] * width
                for s in range(width):
                    given[s] += tables.matrices[row + s] - messages[entries[arc] + s]
        chosen[i] = np.argmin(given[:width])

        lowest = belief[:width].min()
        bound += lowest
        for s in range(width):
            belief[s] -= lowest
            excess[first + s] = belief[s]
        for arc in range(tables.arcs[i], tables.arcs[i + 1]):
            j = tables.others[arc]
            if (rank[j] > rank[i]) != upwards:
                continue
            received = tables.nodes[j + 1] - tables.nodes[j]
            sent[:received] = np.inf
            for s in range(width):
                said = share * belief[s] - messages[entries[arc] + s]
                row = tables.entries[arc] + s * received
                for r in range(received):
                    sent[r] = min(sent[r], said + tables.matrices[row + r])
            lowest = sent[:received].min()
            bound += lowest
            to = entries[tables.backs[arc]]
            for r in range(received):
                messages[to + r] = sent[r] - lowest
    return bound
