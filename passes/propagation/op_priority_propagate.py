"""`sdy-op-priority-propagate`: propagate in stages, through pass-through operations first."""

from dataclasses import dataclass

from sdy.passes.propagation.aggressive_propagate import AggressivePropagatePass
from sdy.passes.propagation.directions import ALL_STAGES
from sdy.passes.propagation.solver import Solver


@dataclass(frozen=True)
class OpPriorityPropagatePass(AggressivePropagatePass):
    """Propagate shardings in stages, through simple operations before operations that mix dimensions.

    Before::

        %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
        %1 = stablehlo.add %0, %arg2

    with `%arg0` sharded `[{"x"}, {}]` and `%arg2` sharded `[{}, {"x"}]`. After, `%0` and `%1` are sharded
    `[{?}, {"x", ?}]`, because additions propagate before matmuls.

    `directions.py` defines the stages. Each adds operations to the stages before it, and runs to its fixed point.
    """

    name = "sdy-op-priority-propagate"

    run_op_priority_propagation: bool = True
    """Propagate in stages, rather than through all operations at once."""

    def propagate(self, solver: Solver) -> None:
        for stages in range(1 if self.run_op_priority_propagation else ALL_STAGES, ALL_STAGES + 1):
            self.propagate_stages(solver, stages)
