"""Flat-array form of the reduced problem, for the Numba kernels, with the times at which memory may be exceeded."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from iopddl_solver.reduction import Item, Reduction

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Tables(NamedTuple):
    """The reduced problem as compressed sparse rows. An edge is two arcs, one from each end.

    Attributes:
        nodes: The offset of each node's strategies in `costs`.
        costs: The cost of each strategy of each node.
        items: The offset of each node's memory items.
        starts: The first time of each item.
        ends: The time after the last one of each item.
        item_entries: The offset of each item in `memory`.
        memory: The memory of each item under each strategy of its node, beyond the minimum of all strategies.
        arcs: The offset of each node's arcs.
        others: The target node of each arc.
        backs: The opposite arc of each arc.
        entries: The offset of each arc in `matrices`.
        matrices: The cost matrix of each arc, with a row for each strategy of its source node.
        capacity: The memory limit at each binding time, without the minimum that every assignment takes.
        forbidden: The finite cost of forbidden pairs, so that kernels can subtract costs. An assignment with a
            forbidden pair costs more than half of it, and any other less.
    """

    nodes: Ints
    costs: Floats
    items: Ints
    starts: Ints
    ends: Ints
    item_entries: Ints
    memory: Ints
    arcs: Ints
    others: Ints
    backs: Ints
    entries: Ints
    matrices: Floats
    capacity: Ints
    forbidden: float


@dataclass(frozen=True)
class Indices:
    """Indices of the tables' nodes, strategies and times in the original problem.

    Attributes:
        nodes: The node of each table node.
        strategies: The strategies of each table node.
        times: The binding times.
        capacity: The memory limit at each time of the problem, without the minimum that every assignment takes.
    """

    nodes: list[int]
    strategies: list[Ints]
    times: Ints
    capacity: Ints

    def to_problem(self, strategies: Ints) -> dict[int, int]:
        """Map table strategies to the strategies of the problem's nodes."""
        return {
            node: int(options[s])
            for node, options, s in zip(self.nodes, self.strategies, strategies.tolist(), strict=True)
        }


def tabulate(reduction: Reduction, horizon: int, limit: int | None) -> tuple[Tables, Indices]:
    """Build the tables of a reduced problem, in which each node has a permitted strategy."""
    left = list(reduction.nodes)
    allowed = [np.flatnonzero(reduction.nodes[node].is_allowed) for node in left]
    least = np.zeros(horizon + 1, np.int64)
    for item in reduction.fixed:
        _add(least, item.start, item.end, int(item.memory))
    varying: list[list[Item]] = []
    for node, strategies in zip(left, allowed, strict=True):
        memory_by_span: dict[tuple[int, int], Ints] = {}
        for item in reduction.nodes[node].items:
            memory = item.memory[strategies]
            _add(least, item.start, item.end, int(memory.min()))
            _accumulate(memory_by_span, (item.start, item.end), memory - memory.min())
        varying.append([Item(*span, memory) for span, memory in memory_by_span.items() if memory.any()])
    unlimited = np.full(horizon, np.iinfo(np.int64).max)
    capacity = unlimited if limit is None else limit - np.cumsum(least)[:-1]
    times = binding_times([item for items in varying for item in items], capacity)

    spans: list[tuple[int, int]] = []
    memories: list[Ints] = []
    items_of = [0]
    for items in varying:
        memory_by_span = {}
        for item in items:
            start, end = np.searchsorted(times, (item.start, item.end))
            if start < end:
                _accumulate(memory_by_span, (int(start), int(end)), item.memory)
        spans += memory_by_span
        memories += memory_by_span.values()
        items_of.append(len(spans))

    number = {node: i for i, node in enumerate(left)}
    arcs = [(i, number[other]) for i, node in enumerate(left) for other in reduction.nodes[node].neighbours]
    place = {arc: k for k, arc in enumerate(arcs)}
    matrices = [reduction.nodes[left[i]].neighbours[left[j]][np.ix_(allowed[i], allowed[j])].ravel() for i, j in arcs]
    tables = Tables(
        nodes=_offsets([strategies.size for strategies in allowed]),
        costs=_joined(
            [reduction.nodes[node].costs[strategies] for node, strategies in zip(left, allowed, strict=True)]
        ),
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
    return _with_finite_costs(tables), Indices(left, allowed, times, capacity)


def _with_finite_costs(tables: Tables) -> Tables:
    is_finite = np.isfinite(tables.matrices)
    sizes = np.abs(np.where(is_finite, tables.matrices, 0))
    largest = sum(float(sizes[a:b].max()) for a, b in pairwise(tables.entries.tolist()))
    largest += 2 * sum(float(np.abs(tables.costs[a:b]).max()) for a, b in pairwise(tables.nodes.tolist()))
    return tables._replace(forbidden=largest + 1, matrices=np.where(is_finite, tables.matrices, largest + 1))


def _accumulate(memory_by_span: dict[tuple[int, int], Ints], span: tuple[int, int], memory: Ints) -> None:
    memory_by_span[span] = memory_by_span[span] + memory if span in memory_by_span else memory


def _add(change: Ints, start: int, end: int, memory: int) -> None:
    change[start] += memory
    change[end] -= memory


def _offsets(sizes: list[int]) -> Ints:
    return np.cumsum([0, *sizes], dtype=np.int64)


def _joined(parts: list[Floats]) -> Floats:
    return np.concatenate([*parts, np.zeros(0)])


def binding_times(items: Sequence[Item], capacity: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the times at which `items` can exceed `capacity`, without redundant ones.

    A time is redundant if all items that are live then are also live at another time with at most the same capacity.
    """
    change = np.zeros(capacity.size + 1, np.int64)
    begins = np.zeros(capacity.size + 1, np.int64)
    stops = np.zeros(capacity.size + 1, np.int64)
    for item in items:
        most = int(item.memory.max())
        change[item.start] += most
        change[item.end] -= most
        begins[item.start] += 1
        stops[item.end] += 1
    begun, stopped = np.cumsum(begins), np.cumsum(stops)
    times: list[int] = []
    for time in np.flatnonzero(np.cumsum(change)[:-1] > capacity).tolist():
        while times and stopped[time] == stopped[times[-1]] and capacity[time] <= capacity[times[-1]]:
            times.pop()
        if not times or begun[time] != begun[times[-1]] or capacity[time] < capacity[times[-1]]:
            times.append(time)
    return np.array(times, np.int64)
