"""`sdy-aggressive-propagate`: propagate, and resolve conflicts between factors in favor of the larger tensor."""

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
    """Propagate shardings, and resolve conflicts between factors of an operation that compete for the same axis.

    Before::

        %0 = stablehlo.dot_general %lhs, %rhs, contracting_dims = [1] x [0]

    with `%lhs: tensor<16x8xf32>` sharded `[{"x"}, {}]` and `%rhs: tensor<8x8xf32>` sharded `[{}, {"x"}]`. After, the
    result has the sharding of the larger operand: `[{"x", ?}, {?}]`. The basic strategy does not shard the result.
    """

    name = "sdy-aggressive-propagate"

    propagation_strategy: PropagationStrategy = "aggressive"
    """The strategies to run to their fixed points, one after the other."""

    def propagate(self, solver: Solver) -> None:
        self.propagate_stages(solver, ALL_STAGES)

    def propagate_stages(self, solver: Solver, stages: int) -> None:
        """Propagate through the operations that the first `stages` stages allow."""
        for strategy in _STRATEGIES[self.propagation_strategy]:
            solver.run(strategy, stages)
