"""What is left after a reduction as a few flat arrays, which compiled loops read."""

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sdy.passes.auto.solver.reduction import Item, Reduction
from sdy.passes.auto.solver.times import binding_times

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Tables(NamedTuple):
    """Nodes, numbered anew, with what they cost and take beyond what every assignment costs and takes.

    What belongs to node i stands from `nodes[i]`, `items[i]`, `arcs[i]` up to the next; what belongs to an item or an
    arc, from its entry on. An edge is two arcs, one from each end.
    """

    nodes: Ints
    costs: Floats
    """For each strategy of each node."""
    items: Ints
    starts: Ints
    ends: Ints
    item_entries: Ints
    memory: Ints
    """For each item, what it takes under each strategy of its node."""
    arcs: Ints
    others: Ints
    """For each arc, the node that it leads to."""
    backs: Ints
    """For each arc, the other arc of its edge."""
    entries: Ints
    matrices: Floats
    """For each arc, a row for each strategy of the node that it comes from."""
    capacity: Ints
    """The memory there is at each time at which it may not suffice."""
    forbidden: float
    """What forbidden pairs cost here, so that compiled loops may subtract: assignments with one cost more than half of
    it, all others less."""


@dataclass(frozen=True)
class Kept:
    """Which nodes, strategies and times of the problem those of the tables are."""

    nodes: list[int]
    strategies: list[Ints]
    times: Ints
    capacity: Ints
    """At each time of the problem, the limit without what every assignment takes."""

    def name(self, chosen: Ints) -> dict[int, int]:
        """The chosen strategies of nodes as the problem numbers them."""
        return {node: int(kept[s]) for node, kept, s in zip(self.nodes, self.strategies, chosen.tolist(), strict=True)}


def tabulate(reduction: Reduction, horizon: int, limit: int | None) -> tuple[Tables, Kept]:
    """The tables of the nodes that `reduction` leaves, each of which needs an allowed strategy."""
    left = list(reduction.nodes)
    kept = [np.flatnonzero(reduction.nodes[node].is_allowed) for node in left]
    least = np.zeros(horizon + 1, np.int64)
    for item in reduction.fixed:
        _add(least, item.start, item.end, int(item.memory))
    varying: list[list[Item]] = []
    for node, strategies in zip(left, kept, strict=True):
        taken: dict[tuple[int, int], Ints] = {}
        for item in reduction.nodes[node].items:
            memory = item.memory[strategies]
            _add(least, item.start, item.end, int(memory.min()))
            _join(taken, (item.start, item.end), memory - memory.min())
        varying.append([Item(*span, memory) for span, memory in taken.items() if memory.any()])
    enough = np.full(horizon, np.iinfo(np.int64).max)
    capacity = enough if limit is None else limit - np.cumsum(least)[:-1]
    times = binding_times([item for items in varying for item in items], capacity)

    spans: list[tuple[int, int]] = []
    memories: list[Ints] = []
    items_of = [0]
    for items in varying:
        taken = {}
        for item in items:
            start, end = np.searchsorted(times, (item.start, item.end))
            if start < end:
                _join(taken, (int(start), int(end)), item.memory)
        spans += taken
        memories += taken.values()
        items_of.append(len(spans))

    number = {node: i for i, node in enumerate(left)}
    arcs = [(i, number[other]) for i, node in enumerate(left) for other in reduction.nodes[node].neighbours]
    place = {arc: k for k, arc in enumerate(arcs)}
    matrices = [reduction.nodes[left[i]].neighbours[left[j]][np.ix_(kept[i], kept[j])].ravel() for i, j in arcs]
    tables = Tables(
        nodes=_offsets([strategies.size for strategies in kept]),
        costs=_joined([reduction.nodes[node].costs[strategies] for node, strategies in zip(left, kept, strict=True)]),
        items=np.array(items_of, np.int64),
        starts=np.array([start for start, _ in spans], np.int64),
        ends=np.array([end for _, end in spans], np.int64),
        item_entries=_offsets([memory.size for memory in memories]),
        memory=np.concatenate([*memories, np.zeros(0, np.int64)]),
        arcs=_offsets([len(reduction.nodes[node].neighbours) for node in left]),
        others=np.array([j for _, j in arcs], np.int64),
        backs=np.array([place[j, i] for i, j in arcs], np.int64),
        entries=_offsets([matrix.size for matrix in matrices]),
        matrices=_joined(matrices),
        capacity=capacity[times],
        forbidden=np.inf,
    )
    return _with_finite_costs(tables), Kept(left, kept, times, capacity)


def _with_finite_costs(tables: Tables) -> Tables:
    is_finite = np.isfinite(tables.matrices)
    sizes = np.abs(np.where(is_finite, tables.matrices, 0))
    dearest = sum(float(sizes[a:b].max()) for a, b in pairwise(tables.entries.tolist()))
    dearest += 2 * sum(float(np.abs(tables.costs[a:b]).max()) for a, b in pairwise(tables.nodes.tolist()))
    return tables._replace(forbidden=dearest + 1, matrices=np.where(is_finite, tables.matrices, dearest + 1))


def _join(taken: dict[tuple[int, int], Ints], span: tuple[int, int], memory: Ints) -> None:
    taken[span] = taken[span] + memory if span in taken else memory


def _add(change: Ints, start: int, end: int, memory: int) -> None:
    change[start] += memory
    change[end] -= memory


def _offsets(sizes: list[int]) -> Ints:
    return np.cumsum([0, *sizes], dtype=np.int64)


def _joined(parts: list[Floats]) -> Floats:
    return np.concatenate([*parts, np.zeros(0)])
