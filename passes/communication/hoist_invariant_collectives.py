"""`sdy-hoist-invariant-collectives`: loop-invariant code motion of collectives."""

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint

from sdy.ir.editing import insert
from sdy.ir.walking import innermost_first, operations_of
from sdy.passes.common.loops import LoopInvariants
from sdy.passes.communication.predicted_gain import UnlessSlowerPass
from sdy.passes.spmd.local_module import COLLECTIVES
from sdy.stablehlo.control_flow import WhileOp


class HoistInvariantCollectivesPass(UnlessSlowerPass):
    """Hoist collectives of loop-invariant values out of loops, with the operations that compute their operands.

    Before::

        %0:2 = stablehlo.while(%w = %arg0, %x = %arg1) : tensor<2x8xf32>, tensor<4x8xf32>
          ...
          %1 = stablehlo.tanh %w : tensor<2x8xf32>
          %2 = "stablehlo.all_gather"(%1) <{all_gather_dim = 0 : i64, replica_groups = ...}>
          %3 = stablehlo.dot_general %x, %2, ...
          stablehlo.return %w, %3 : tensor<2x8xf32>, tensor<4x8xf32>

    After::

        %0 = stablehlo.tanh %arg0 : tensor<2x8xf32>
        %1 = "stablehlo.all_gather"(%0) <{all_gather_dim = 0 : i64, replica_groups = ...}>
        %2:2 = stablehlo.while(%w = %arg0, %x = %arg1) : tensor<2x8xf32>, tensor<4x8xf32>
          ...
          %3 = stablehlo.dot_general %x, %1, ...

    A collective in a branch is not hoisted, because the branch may never be taken, nor is one behind an optimization
    barrier. XLA hoists these collectives too, but too late to merge them with others, or to count them correctly in the
    cost model.

    In a loop, a collective can run beside computation: with `hardware`, a preset or a file, or by default the module's
    attribute `sdy.hardware`, nothing is hoisted if the step then takes longer, as predicted.
    """

    name = "sdy-hoist-invariant-collectives"

    def change(self, module: ModuleOp) -> None:
        for loop in innermost_first(operations_of(module, WhileOp)):
            collectives = [
                inner for region in loop.regions for inner in region.block.ops if isinstance(inner, COLLECTIVES)
            ]
            if collectives:
                _hoist(collectives, loop)


def _hoist(collectives: Sequence[Operation], loop: WhileOp) -> None:
    invariants = LoopInvariants(loop)
    for collective in collectives:
        producers = invariants.producers(collective.operands)
        for op in () if producers is None else (*producers, collective):
            op.detach()
            op.operands = [invariants.initial_values.get(operand, operand) for operand in op.operands]
            insert(op, InsertPoint.before(loop))
