"""`sdy-remove-propagation-debug-info`: remove the attributes of propagation's debug options."""

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from sdy.dialect.attributes import (
    BLOCK_ARG_PROPAGATION_EDGES,
    BLOCK_ARG_SHARDING_ORIGINS,
    PROPAGATION_EDGES,
    RESULT_PROPAGATION_EDGES,
    RESULT_SHARDING_ORIGINS,
    SHARDING_ORIGINS,
)
from sdy.ir.editing import AnalysisPreservingPass
from sdy.ir.walking import operations
from sdy.passes.common.argument_names import remove_from_arguments_and_results

_DEBUG_ATTRIBUTES = {
    PROPAGATION_EDGES,
    BLOCK_ARG_PROPAGATION_EDGES,
    RESULT_PROPAGATION_EDGES,
    SHARDING_ORIGINS,
    BLOCK_ARG_SHARDING_ORIGINS,
    RESULT_SHARDING_ORIGINS,
}


class RemovePropagationDebugInfoPass(AnalysisPreservingPass):
    """Remove the attributes that `debug-sharding-origins` and `debug-propagation-edge-sharding` add.

    Before::

        %0 = stablehlo.negate %arg0 {sdy.sharding_origins = [{x = "input: 0"}]} : tensor<8xf32>

    After::

        %0 = stablehlo.negate %arg0 : tensor<8xf32>
    """

    name = "sdy-remove-propagation-debug-info"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for operation in operations(op):
            if isinstance(operation, FuncOp):
                remove_from_arguments_and_results(operation, _DEBUG_ATTRIBUTES)
            else:
                for name in _DEBUG_ATTRIBUTES:
                    operation.attributes.pop(name, None)
