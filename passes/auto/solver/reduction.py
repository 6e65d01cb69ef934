"""Nodes that others decide are merged into these, exactly; what is left is a smaller problem with the same optimum.

A node is decided by a neighbour when each strategy of the neighbour leaves it one choice that no other is better than:
most often because their edge forbids all other pairs, or because the node is a leaf without memory. Strategies that
have no finite partner along an edge are forbidden, and edges whose costs are a sum of two parts go to their ends.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sdy.passes.auto.solver.problem import Assignment, Bytes, Costs, Problem

Choices = NDArray[np.int64]

LARGEST_TABLE = 1 << 20
"""Entries, at most, of a table of what a node costs with each pair of strategies of two others."""


@dataclass(frozen=True)
class Decided:
    """A node that is decided by others: its strategy is `table[strategies of deciders]`."""

    node: int
    deciders: tuple[int, ...]
    table: Choices


@dataclass
class Item:
    """What a node takes from `start` up to `end`: a number for each of its strategies."""

    start: int
    end: int
    memory: Bytes


def memory_at(items: Sequence[Item], strategies: int, time: int) -> Bytes:
    """What each of so many strategies takes at a time."""
    return sum((item.memory for item in items if item.start <= time < item.end), np.zeros(strategies, np.int64))


@dataclass
class Node:
    """A node that is left: its costs, the memory of all that it decides, and the costs with its neighbours."""

    costs: Costs
    items: list[Item]
    neighbours: dict[int, Costs] = field(default_factory=dict[int, Costs])

    @property
    def size(self) -> int:
        """How much there is to move where another node decides this one."""
        return len(self.items) + len(self.neighbours)

    @property
    def is_allowed(self) -> NDArray[np.bool_]:
        return np.isfinite(self.costs)


class Reduction:
    """The nodes that are left of `problem`, and how the others follow from them."""

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
        """Takes strategies from a node; `settle` then reduces further."""
        self.nodes[node].costs = np.where(is_forbidden, np.inf, self.nodes[node].costs)
        self._wake(node)
        for other in self.nodes[node].neighbours:
            self._wake(other)

    def settle(self) -> None:
        """Merges nodes until none is decided by another."""
        while self._waiting:
            node = self._waiting.popleft()
            self._is_waiting[node] = False
            if node in self.nodes:
                self._visit(node)

    @property
    def is_contradictory(self) -> bool:
        """Whether some node has no strategy left."""
        return not all(node.is_allowed.any() for node in self.nodes.values())

    def expand(self, left: dict[int, int], size: int) -> Assignment:
        """The strategies of all `size` nodes, given those of the nodes that are left."""
        assignment = np.full(size, -1, np.int64)
        for node, chosen in left.items():
            assignment[node] = chosen
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
            if self._simplify(name, other) and self._decide_along(name, other):
                return
        if len(node.neighbours) <= 2:
            self._decide_freely(name)

    def _simplify(self, first: int, second: int) -> bool:
        """Forbids what has no partner along an edge; whether the edge is still there."""
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
        part = matrix[rows][:, columns]
        if not np.isfinite(part).all():
            return True
        along = part[:, 0]
        across = part[0] - part[0, 0]
        if not np.array_equal(part, along[:, None] + across):
            return True
        one.costs = one.costs.copy()
        two.costs = two.costs.copy()
        one.costs[rows] += along
        two.costs[columns] += across
        self._drop_edge(first, second)
        return False

    def _decide_along(self, name: int, other: int) -> bool:
        """Merges a node and a neighbour of it, if one leaves the other no choice; whether `name` is gone."""
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
        """Makes `into` decide `name` by `table`."""
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

    def _decide_freely(self, name: int) -> None:
        """Merges a node with at most two neighbours into these, if its cheapest choice also takes the least memory."""
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
        for taken in memory:
            lowest = np.where(np.isfinite(costs), taken, np.iinfo(np.int64).max).min(-1)
            if ((taken[best] > lowest) & np.isfinite(least)).any():
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
