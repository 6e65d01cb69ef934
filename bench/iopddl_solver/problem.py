"""Strategy selection problem: nodes with strategies, edges with pairwise costs, and a memory limit over time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Costs = NDArray[np.float64]
Bytes = NDArray[np.int64]
Assignment = NDArray[np.int64]
"""The strategy of each node."""


@dataclass(frozen=True)
class Problem:
    """Select a strategy for each node such that the total cost is minimal and memory is within the limit at each time.

    Costs are 64-bit floats; infinity forbids a strategy or a pair of strategies. Sums of integers are exact up to
    2**53. Memory is integral.
    """

    costs: Sequence[Costs]
    """For each node, the cost of each of its strategies: shape (strategies,)."""
    memory: Sequence[Bytes]
    """For each node, the memory of each of its strategies while the node is live: shape (strategies,), nonnegative."""
    edges: Sequence[tuple[int, int]]
    """Pairs of different nodes; a pair may occur more than once."""
    matrices: Sequence[Costs]
    """For each edge, a cost for each pair of strategies: shape (strategies of the first, of the second)."""
    lifetimes: Sequence[tuple[int, int]]
    """For each node, the half-open interval of times at which it is live; times start at 0."""
    limit: int | None = None
    """The memory limit at each time, or None for no limit."""

    def __post_init__(self):
        nodes = len(self.costs)
        if len(self.memory) != nodes or len(self.lifetimes) != nodes:
            raise ValueError(
                f"{nodes} nodes have costs, {len(self.memory)} have memory and {len(self.lifetimes)} have lifetimes"
            )
        if len(self.edges) != len(self.matrices):
            raise ValueError(f"there are {len(self.edges)} edges and {len(self.matrices)} matrices")
        for node, (costs, memory, (start, _)) in enumerate(zip(self.costs, self.memory, self.lifetimes, strict=True)):
            if costs.ndim != 1 or not costs.size or costs.shape != memory.shape:
                raise ValueError(f"node {node} has costs of shape {costs.shape} and memory of shape {memory.shape}")
            if np.isnan(costs).any() or (costs == -np.inf).any():
                raise ValueError(f"node {node} has a cost that is not a number, or -inf")
            if (memory < 0).any():
                raise ValueError(f"node {node} has a strategy with negative memory")
            if start < 0:
                raise ValueError(f"node {node} is live from time {start}, before time 0")
        for (first, second), matrix in zip(self.edges, self.matrices, strict=True):
            if not (0 <= first < nodes and 0 <= second < nodes) or first == second:
                raise ValueError(f"an edge joins nodes {first} and {second} of {nodes}")
            if matrix.shape != (self.costs[first].size, self.costs[second].size):
                raise ValueError(f"the edge of nodes {first} and {second} has costs of shape {matrix.shape}")
            if np.isnan(matrix).any() or (matrix == -np.inf).any():
                raise ValueError(f"the edge of nodes {first} and {second} has a cost that is not a number, or -inf")

    @property
    def horizon(self) -> int:
        """The time from which no node is live."""
        return max((end for _, end in self.lifetimes), default=0)


def cost_of(problem: Problem, assignment: Assignment) -> float:
    """Return the total cost of nodes and edges; infinite if the assignment has a forbidden strategy or pair."""
    cost = sum(float(costs[strategy]) for costs, strategy in zip(problem.costs, assignment, strict=True))
    return cost + sum(
        float(matrix[assignment[first], assignment[second]])
        for (first, second), matrix in zip(problem.edges, problem.matrices, strict=True)
    )


def usage_of(problem: Problem, assignment: Assignment) -> Bytes:
    """Return the memory at each time: shape (horizon,)."""
    change = np.zeros(problem.horizon + 1, np.int64)
    for memory, strategy, (start, end) in zip(problem.memory, assignment, problem.lifetimes, strict=True):
        if start < end:
            change[start] += memory[strategy]
            change[end] -= memory[strategy]
    return np.cumsum(change)[:-1]


def memory_by_node(problem: Problem, assignment: Assignment, time: int) -> list[tuple[int, int]]:
    """Return the nodes that take memory at a time, with their memory, the largest first."""
    usage = [
        (node, int(memory[strategy]))
        for node, (memory, strategy, (start, end)) in enumerate(
            zip(problem.memory, assignment, problem.lifetimes, strict=True)
        )
        if start <= time < end and memory[strategy]
    ]
    return sorted(usage, key=lambda each: (-each[1], each[0]))
