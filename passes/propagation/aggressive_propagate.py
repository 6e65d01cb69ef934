"""`sdy-aggressive-propagate`: propagate, and let the more valuable factor have an axis that two contend for."""

from dataclasses import dataclass
from typing import Literal

from sdy.passes.propagation.directions import ALL_STAGES
from sdy.passes.propagation.propagation_pass import PropagationPass
from sdy.passes.propagation.solver import Solver
from sdy.passes.propagation.step import Strategy

PropagationStrategy = Literal["basic", "aggressive", "basic-then-aggressive"]

_STRATEGIES: dict[PropagationStrategy, tuple[Strategy, ...]] = {
    "basic": ("basic",),
    "aggressive": ("aggressive",),
    "basic-then-aggressive": ("basic", "aggressive"),
}


@dataclass(frozen=True)
class AggressivePropagatePass(PropagationPass):
    """Propagate shardings, deciding between the factors of an operation that want the same axis.

    Before::

        %0 = stablehlo.dot_general %lhs, %rhs, contracting_dims = [1] x [0]

    with `%lhs: tensor<16x8xf32>` sharded `[{"x"}, {}]` and `%rhs: tensor<8x8xf32>` sharded `[{}, {"x"}]`. After, the
    result is sharded as the larger operand asks: `[{"x", ?}, {?}]`. The basic strategy leaves it alone.
    """

    name = "sdy-aggressive-propagate"

    propagation_strategy: PropagationStrategy = "aggressive"
    """Which strategies to bring to their fixed point, one after the other."""

    def propagate(self, solver: Solver) -> None:
        self.propagate_stages(solver, ALL_STAGES)

    def propagate_stages(self, solver: Solver, stages: int) -> None:
        """Propagate through the operations that the first `stages` stages allow."""
        for strategy in _STRATEGIES[self.propagation_strategy]:
            solver.run(strategy, stages)
