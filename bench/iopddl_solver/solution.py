"""Result of the solver."""

from dataclasses import dataclass

from iopddl_solver.problem import Assignment

TOLERANCE = 1e-6


@dataclass(frozen=True)
class Shortage:
    """Explanation of why no assignment within the memory limit was found."""

    time: int
    """The time of the largest memory use."""
    needed: int
    """The memory at that time: of the best assignment found, or the minimum of all assignments if `is_proven`."""
    nodes: tuple[tuple[int, int], ...]
    """The nodes that take memory at that time, with their memory, the largest first."""
    is_proven: bool
    """True if no assignment is within the memory limit."""


@dataclass(frozen=True)
class Solution:
    """The best assignment found, with a lower bound."""

    assignment: Assignment | None
    """The strategy of each node, of shape (nodes,), or None if no feasible assignment was found."""
    cost: float
    """The total cost of nodes and edges; infinite without an assignment."""
    bound: float
    """A lower bound of the cost of all feasible assignments; infinite if none exists."""
    shortage: Shortage | None = None
    """The memory shortage if there is no assignment; None if the reason is forbidden strategies."""

    @property
    def is_optimal(self) -> bool:
        """True if the assignment is proven optimal, up to a millionth of its cost."""
        return is_optimal(self.cost, self.bound)


def is_optimal(cost: float, bound: float, *, exactly: bool = False) -> bool:
    """Return whether `bound` proves `cost` optimal; up to a relative tolerance, for rounding, unless `exactly`."""
    return bound >= cost or (not exactly and cost - bound <= TOLERANCE * abs(cost) < float("inf"))
