"""`sdy-hoist-invariant-collectives`: loop-invariant collectives are moved in front of the loop."""

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint

from sdy.ir.editing import AnalysisPreservingPass, insert
from sdy.ir.walking import innermost_first, operations_of
from sdy.passes.common.loops import LoopInvariants
from sdy.passes.spmd.device_collectives import COLLECTIVES
from sdy.stablehlo.control_flow import WhileOp


class HoistInvariantCollectivesPass(AnalysisPreservingPass):
    """Move collectives of what a loop does not change to before the loop, with what makes their operands.

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

    Those in a branch stay there, as it may be taken in no iteration, and so do those behind an optimization barrier.
    XLA moves them too; only here can they be merged with others afterwards, and counted as often as they run.
    """

    name = "sdy-hoist-invariant-collectives"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in innermost_first(operations_of(op, WhileOp)):
            found = [inner for region in loop.regions for inner in region.block.ops if isinstance(inner, COLLECTIVES)]
            if found:
                _hoist(found, loop)


def _hoist(collectives: Sequence[Operation], loop: WhileOp) -> None:
    invariants = LoopInvariants(loop)
    for collective in collectives:
        makers = invariants.producers(collective.operands)
        for op in () if makers is None else (*makers, collective):
            op.detach()
            op.operands = [invariants.initial_values.get(operand, operand) for operand in op.operands]
            insert(op, InsertPoint.before(loop))
