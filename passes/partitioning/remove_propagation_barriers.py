"""`sdy-remove-propagation-barriers`: removal of propagation barriers after propagation."""

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from sdy.dialect.ops import PropagationBarrierOp
from sdy.ir.editing import AnalysisPreservingPass, replace
from sdy.ir.walking import operations_of


class RemovePropagationBarriersPass(AnalysisPreservingPass):
    """Replace every `sdy.propagation_barrier` by its operand.

    A barrier only stops propagation and is the identity on its operand. Without it, its users reshard directly from the
    sharding of the operand, as `sdy-insert-explicit-reshards` expects.

    Before::

        %0 = stablehlo.negate %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
        %1 = sdy.propagation_barrier %0 allowed_direction=NONE : tensor<8xf32>
        %2 = stablehlo.tanh %1 : tensor<8xf32>

    After::

        %0 = stablehlo.negate %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
        %2 = stablehlo.tanh %0 : tensor<8xf32>
    """

    name = "sdy-remove-propagation-barriers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for barrier in operations_of(op, PropagationBarrierOp):
            replace(barrier, [barrier.input])
