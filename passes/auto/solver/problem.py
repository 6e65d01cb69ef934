"""What is to be solved: nodes that choose among strategies, edges between them, and a limit of memory over time."""

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
    """Choose a strategy for each node, so that the sum of costs is least and memory suffices at each time.

    Costs are 64-bit floats, so that infinity forbids a strategy or a pair of strategies; sums of whole numbers are
    exact up to 2**53. Memory is whole numbers.
    """

    costs: Sequence[Costs]
    """For each node, the cost of each of its strategies: shape (strategies,)."""
    memory: Sequence[Bytes]
    """For each node, what each of its strategies takes as long as the node lives: shape (strategies,), not negative."""
    edges: Sequence[tuple[int, int]]
    """Pairs of different nodes; a pair may occur more than once."""
    matrices: Sequence[Costs]
    """For each edge, a cost for each pair of strategies: shape (strategies of the first, of the second)."""
    lifetimes: Sequence[tuple[int, int]]
    """For each node, the times at which it takes memory, from the first up to the second, without it; from 0 on."""
    limit: int | None = None
    """How much memory there is at each time, or None if it is no matter."""

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
                raise ValueError(f"node {node} has a strategy that takes less than no memory")
            if start < 0:
                raise ValueError(f"node {node} lives from {start} on, before time 0")
        for (first, second), matrix in zip(self.edges, self.matrices, strict=True):
            if not (0 <= first < nodes and 0 <= second < nodes) or first == second:
                raise ValueError(f"an edge joins nodes {first} and {second} of {nodes}")
            if matrix.shape != (self.costs[first].size, self.costs[second].size):
                raise ValueError(f"the edge of nodes {first} and {second} has costs of shape {matrix.shape}")
            if np.isnan(matrix).any() or (matrix == -np.inf).any():
                raise ValueError(f"the edge of nodes {first} and {second} has a cost that is not a number, or -inf")

    @property
    def horizon(self) -> int:
        """The time after which no node takes memory."""
        return max((end for _, end in self.lifetimes), default=0)


def cost_of(problem: Problem, assignment: Assignment) -> float:
    """The sum of the costs of nodes and edges, infinite where the assignment takes what is forbidden."""
    cost = sum(float(costs[chosen]) for costs, chosen in zip(problem.costs, assignment, strict=True))
    return cost + sum(
        float(matrix[assignment[first], assignment[second]])
        for (first, second), matrix in zip(problem.edges, problem.matrices, strict=True)
    )


def usage_of(problem: Problem, assignment: Assignment) -> Bytes:
    """How much memory is taken at each time: shape (horizon,)."""
    change = np.zeros(problem.horizon + 1, np.int64)
    for memory, chosen, (start, end) in zip(problem.memory, assignment, problem.lifetimes, strict=True):
        if start < end:
            change[start] += memory[chosen]
            change[end] -= memory[chosen]
    return np.cumsum(change)[:-1]


def memory_taken(problem: Problem, assignment: Assignment, time: int) -> list[tuple[int, int]]:
    """The nodes that take memory at a time, and how much, the greatest first."""
    taken = [
        (node, int(memory[chosen]))
        for node, (memory, chosen, (start, end)) in enumerate(
            zip(problem.memory, assignment, problem.lifetimes, strict=True)
        )
        if start <= time < end and memory[chosen]
    ]
    return sorted(taken, key=lambda each: (-each[1], each[0]))
