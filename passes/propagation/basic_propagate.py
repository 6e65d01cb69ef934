"""`sdy-basic-propagate`: propagate shardings up to the first conflict."""

from dataclasses import dataclass

from sdy.passes.propagation.directions import ALL_STAGES
from sdy.passes.propagation.propagation_pass import PropagationPass
from sdy.passes.propagation.solver import Solver


@dataclass(frozen=True)
class BasicPropagatePass(PropagationPass):
    """Propagate the shardings that all operands and results of an operation can agree on.

    Before::

        func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x8xf32> {
          %0 = stablehlo.negate %arg0 : tensor<8x8xf32>

    After::

          %0 = stablehlo.negate %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", ?}, {?}]>]>}
              : tensor<8x8xf32>

    If shardings conflict, the axes before the conflict are propagated.
    """

    name = "sdy-basic-propagate"

    def propagate(self, solver: Solver) -> None:
        solver.run("basic", ALL_STAGES)
