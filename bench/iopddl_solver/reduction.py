"""Exact reduction of a problem by variable elimination; the smaller problem has the same optimum.

A node is eliminated if each strategy of a neighbor determines its best strategy: most often because their edge forbids
all other pairs, or because the node is a leaf without memory. Strategies without a permitted partner along an edge are
forbidden. Edges whose cost matrix is separable are moved into the costs of their nodes.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from iopddl_solver.problem import Assignment, Bytes, Costs, Problem

Choices = NDArray[np.int64]

LARGEST_TABLE = 1 << 20
"""Maximum number of entries of the cost table of a node over the strategies of two neighbors."""


@dataclass(frozen=True)
class Decided:
    """An eliminated node: its strategy is `table[strategies of deciders]`."""

    node: int
    deciders: tuple[int, ...]
    table: Choices


@dataclass
class Item:
    """Memory of each strategy of a node at the times from `start` up to `end`."""

    start: int
    end: int
    memory: Bytes


def memory_at(items: Sequence[Item], strategies: int, time: int) -> Bytes:
    """Return the memory at a time of each of `strategies` strategies."""
    return sum((item.memory for item in items if item.start <= time < item.end), np.zeros(strategies, np.int64))


@dataclass
class Node:
    """A remaining node: its costs, its memory including that of merged nodes, and the costs of its edges."""

    costs: Costs
    items: list[Item]
    neighbours: dict[int, Costs] = field(default_factory=dict[int, Costs])

    @property
    def size(self) -> int:
        """The number of items and edges to move if the node is merged into another."""
        return len(self.items) + len(self.neighbours)

    @property
    def is_allowed(self) -> NDArray[np.bool_]:
        return np.isfinite(self.costs)


class Reduction:
    """The reduced form of a problem: the remaining nodes, and the tables that determine the others."""

    def __init__(self, problem: Problem):
        self.nodes = {
            node: Node(
                costs.astype(np.float64),
                [Item(start, end, memory)] if start < end and problem.limit is not None else [],
            )
            for node, (costs, memory, (start, end)) in enumerate(
                zip(problem.costs, problem.memory, problem.lifetimes, strict=True)
            )
        }
        self.decided: list[Decided] = []
        self.offset = 0.0
        self.fixed: list[Item] = []
        self._waiting = deque(self.nodes)
        self._is_waiting = dict.fromkeys(self.nodes, True)
        for (first, second), matrix in zip(problem.edges, problem.matrices, strict=True):
            self._add_edge(first, second, matrix)
        self.settle()

    def forbid(self, node: int, is_forbidden: NDArray[np.bool_]) -> None:
        """Forbid strategies of a node; `settle` then reduces further."""
        self.nodes[node].costs = np.where(is_forbidden, np.inf, self.nodes[node].costs)
        self._wake(node)
        for other in self.nodes[node].neighbours:
            self._wake(other)

    def settle(self) -> None:
        """Eliminate nodes until no rule applies."""
        while self._waiting:
            node = self._waiting.popleft()
            self._is_waiting[node] = False
            if node in self.nodes:
                self._visit(node)

    @property
    def is_contradictory(self) -> bool:
        """True if a node has no permitted strategy."""
        return not all(node.is_allowed.any() for node in self.nodes.values())

    def expand(self, left: dict[int, int], size: int) -> Assignment:
        """Return the strategies of all `size` nodes of the problem, given those of the remaining nodes."""
        assignment = np.full(size, -1, np.int64)
        for node, strategy in left.items():
            assignment[node] = strategy
        for decided in reversed(self.decided):
            assignment[decided.node] = decided.table[tuple(assignment[by] for by in decided.deciders)]
        return assignment

    def _wake(self, node: int) -> None:
        if not self._is_waiting[node]:
            self._is_waiting[node] = True
            self._waiting.append(node)

    def _add_edge(self, first: int, second: int, matrix: Costs) -> None:
        known = self.nodes[first].neighbours.get(second)
        total = matrix if known is None else known + matrix
        self.nodes[first].neighbours[second] = total
        self.nodes[second].neighbours[first] = total.T
        self._wake(first)
        self._wake(second)

    def _drop_edge(self, first: int, second: int) -> None:
        del self.nodes[first].neighbours[second], self.nodes[second].neighbours[first]
        self._wake(first)
        self._wake(second)

    def _visit(self, name: int) -> None:
        node = self.nodes[name]
        for other in list(node.neighbours):
            if self._simplify(name, other) and self._merge_determined(name, other):
                return
        if len(node.neighbours) <= 2:
            self._eliminate(name)

    def _simplify(self, first: int, second: int) -> bool:
        """Forbid strategies without a permitted partner along an edge, and remove the edge if it is separable.

        Returns:
            Whether the edge remains.
        """
        one, two = self.nodes[first], self.nodes[second]
        matrix = one.neighbours[second]
        finite = np.isfinite(matrix) & one.is_allowed[:, None] & two.is_allowed
        for name, node, supported in ((first, one, finite.any(1)), (second, two, finite.any(0))):
            if (node.is_allowed & ~supported).any():
                node.costs = np.where(supported, node.costs, np.inf)
                self._wake(name)
                for other in node.neighbours:
                    self._wake(other)
        rows, columns = np.flatnonzero(finite.any(1)), np.flatnonzero(finite.any(0))
        if not rows.size:
            return True
        submatrix = matrix[rows][:, columns]
        if not np.isfinite(submatrix).all():
            return True
        row_costs = submatrix[:, 0]
        column_costs = submatrix[0] - submatrix[0, 0]
        if not np.array_equal(submatrix, row_costs[:, None] + column_costs):
            return True
        one.costs = one.costs.copy()
        two.costs = two.costs.copy()
        one.costs[rows] += row_costs
        two.costs[columns] += column_costs
        self._drop_edge(first, second)
        return False

    def _merge_determined(self, name: int, other: int) -> bool:
        """Merge a node and a neighbor if one determines the other.

        Returns:
            Whether `name` was merged into `other`.
        """
        node, neighbour = self.nodes[name], self.nodes[other]
        finite = np.isfinite(node.neighbours[other]) & node.is_allowed[:, None] & neighbour.is_allowed
        if not finite.any():
            return False
        decides = (finite.sum(1) <= 1).all()
        is_decided = (finite.sum(0) <= 1).all()
        if is_decided and (not decides or node.size <= neighbour.size):
            self._merge(name, other, finite.argmax(0))
            return True
        if decides:
            self._merge(other, name, finite.argmax(1))
        return False

    def _merge(self, name: int, into: int, table: Choices) -> None:
        """Merge node `name` into `into`, whose strategies determine its strategy by `table`."""
        node, decider = self.nodes[name], self.nodes[into]
        decider.costs = decider.costs + node.costs[table] + decider.neighbours[name][np.arange(table.size), table]
        decider.items += [Item(item.start, item.end, item.memory[table]) for item in node.items]
        for other, matrix in node.neighbours.items():
            del self.nodes[other].neighbours[name]
            self._wake(other)
            if other != into:
                self._add_edge(into, other, matrix[table])
        self._wake(into)
        del self.nodes[name]
        self.decided.append(Decided(name, (into,), table))

    def _eliminate(self, name: int) -> None:
        """Merge a node into its at most two neighbors if its cheapest strategy also takes the least memory."""
        node = self.nodes[name]
        neighbours = tuple(node.neighbours)
        allowed = np.flatnonzero(node.is_allowed)
        if not allowed.size or (len(neighbours) == 2 and node.items):
            return
        match [node.neighbours[other].T[:, allowed] for other in neighbours]:
            case []:
                costs = node.costs[allowed]
            case [one]:
                costs = node.costs[allowed] + one
            case [one, two]:
                if one.size * len(two) > LARGEST_TABLE:
                    return
                costs = node.costs[allowed] + one[:, None] + two
            case _:
                return
        memory = np.array([item.memory[allowed] for item in node.items], np.int64).reshape(-1, allowed.size)
        by_memory = np.argsort(memory.sum(0), kind="stable")
        best = by_memory[np.argmin(costs[..., by_memory], -1)]
        least = np.take_along_axis(costs, best[..., None], -1)[..., 0]
        for usage in memory:
            lowest = np.where(np.isfinite(costs), usage, np.iinfo(np.int64).max).min(-1)
            if ((usage[best] > lowest) & np.isfinite(least)).any():
                return
        table = allowed[best]
        for other in neighbours:
            del self.nodes[other].neighbours[name]
            self._wake(other)
        del self.nodes[name]
        self.decided.append(Decided(name, neighbours, table))
        items = [Item(item.start, item.end, item.memory[table]) for item in node.items]
        match neighbours:
            case (decider,):
                self.nodes[decider].costs = self.nodes[decider].costs + least
                self.nodes[decider].items += items
            case (first, second):
                self._add_edge(first, second, least)
            case _:
                self.offset += float(least)
                self.fixed += items
