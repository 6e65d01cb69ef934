"""`sdy-op-priority-propagate`: propagate through one kind of operation after the other."""

from dataclasses import dataclass

from sdy.passes.propagation.aggressive_propagate import AggressivePropagatePass
from sdy.passes.propagation.directions import ALL_STAGES
from sdy.passes.propagation.solver import Solver


@dataclass(frozen=True)
class OpPriorityPropagatePass(AggressivePropagatePass):
    """Propagate shardings in stages, simple operations before those that mix dimensions.

    Before::

        %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
        %1 = stablehlo.add %0, %arg2

    with `%arg0` sharded `[{"x"}, {}]` and `%arg2` sharded `[{}, {"x"}]`. After, `%0` and `%1` are sharded
    `[{?}, {"x", ?}]`, because additions are propagated through before matmuls.

    The stages, each of which adds to those before it and is brought to its fixed point, are in `directions.py`.
    """

    name = "sdy-op-priority-propagate"

    run_op_priority_propagation: bool = True
    """Whether to do so in stages, rather than through all operations at once."""

    def propagate(self, solver: Solver) -> None:
        for stages in range(1 if self.run_op_priority_propagation else ALL_STAGES, ALL_STAGES + 1):
            self.propagate_stages(solver, stages)
