"""`sdy-add-data-flow-edges`: insert data-flow edges at the boundaries of regions."""

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from sdy.dialect.interfaces import ShardableDataFlow, data_flow_of
from sdy.ir.editing import AnalysisPreservingPass
from sdy.ir.walking import innermost_first, operations_with
from sdy.passes.common.data_flow_edges import add_edges


class AddDataFlowEdgesPass(AnalysisPreservingPass):
    """Insert an `sdy.data_flow_edge` after every value that owns a data-flow edge, to hold the edge's sharding.

    Before::

        %0 = stablehlo.optimization_barrier %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
            : tensor<8xf32>
        %1 = stablehlo.negate %0 : tensor<8xf32>

    After::

        %0 = stablehlo.optimization_barrier %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
            : tensor<8xf32>
        %1 = sdy.data_flow_edge %0 sharding=<@mesh, [{"x"}]> : tensor<8xf32>
        %2 = stablehlo.negate %1 : tensor<8xf32>

    Operations with the `ShardableDataFlow` interface have data-flow edges: loops, conditionals, manual and named
    computations, and optimization barriers. `sdy-sink-data-flow-edges` is the inverse.
    """

    name = "sdy-add-data-flow-edges"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for operation in innermost_first(operations_with(op, ShardableDataFlow)):
            flow = data_flow_of(operation)
            if flow is not None:
                add_edges(flow.block_argument_edge_owners(operation))
                add_edges(flow.result_edge_owners(operation))
