"""What the solver answers."""

from dataclasses import dataclass

from sdy.passes.auto.solver.problem import Assignment

TOLERANCE = 1e-6


@dataclass(frozen=True)
class Shortage:
    """Memory that no assignment that was found does without."""

    time: int
    """When it is missing most."""
    needed: int
    """How much is taken then: by what takes least of what was found, or at least by any if `is_proven`."""
    nodes: tuple[tuple[int, int], ...]
    """What takes it: nodes and how much, the greatest first."""
    is_proven: bool
    """Whether it is certain that no assignment needs less than the limit."""


@dataclass(frozen=True)
class Solution:
    """The best assignment that was found, unless there is none."""

    assignment: Assignment | None
    """The strategy of each node: shape (nodes,); None if all that were found are forbidden or take too much."""
    cost: float
    """The sum of the costs of nodes and edges; infinite without an assignment."""
    bound: float
    """No assignment costs less; infinite if it is certain that there is none."""
    shortage: Shortage | None = None
    """Why there is no assignment, if memory is why; without this, all are forbidden."""

    @property
    def is_optimal(self) -> bool:
        """Whether it is certain that none is better, or at most by a millionth of the cost."""
        return is_optimal(self.cost, self.bound)


def is_optimal(cost: float, bound: float, *, exactly: bool = False) -> bool:
    """Whether a cost is that of a best assignment, as sums of other than whole numbers can tell."""
    return bound >= cost or (not exactly and cost - bound <= TOLERANCE * abs(cost) < float("inf"))
