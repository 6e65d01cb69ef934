"""`sdy-sink-func-data-flow-edges`: move the shardings of function data-flow edges to their inputs, and remove them."""

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from sdy.dialect.ops import FuncDataFlowEdgeOp
from sdy.dialect.shardings import get_sharding, set_sharding
from sdy.ir.editing import AnalysisPreservingPass, replace
from sdy.ir.walking import operations_of
from sdy.sharding import TensorSharding


class SinkFuncDataFlowEdgesPass(AnalysisPreservingPass):
    """Remove every `sdy.func_data_flow_edge`, and move its sharding to its input.

    Before::

        %0 = call @f(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
        %1 = sdy.func_data_flow_edge %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
        return %1 : tensor<8xf32>

    After::

        %0 = call @f(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
            : (tensor<8xf32>) -> tensor<8xf32>
        return %0 : tensor<8xf32>

    If the edge has no sharding but its input has one, the input's sharding becomes open and empty.
    """

    name = "sdy-sink-func-data-flow-edges"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for edge in operations_of(op, FuncDataFlowEdgeOp):
            before, after = get_sharding(edge.input), get_sharding(edge.result)
            if after is not None:
                set_sharding(edge.input, after)
            elif before is not None:
                set_sharding(edge.input, TensorSharding.replicated_open(before.mesh, before.rank))
            replace(edge, [edge.input])
