"""`sdy-sink-data-flow-edges`: the shardings of data-flow edges go back to the values that own the edges."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from sdy.diagnostics import error
from sdy.dialect.interfaces import data_flow_of
from sdy.dialect.ops import DataFlowEdgeOp
from sdy.dialect.walk import operations, operations_of
from sdy.passes.common.data_flow_edges import edge_shardings


@dataclass(frozen=True)
class SinkDataFlowEdgesPass(ModulePass):
    """Remove every `sdy.data_flow_edge`, moving its sharding to its input.

    Before::

        %0 = stablehlo.optimization_barrier %arg0 : tensor<8xf32>
        %1 = sdy.data_flow_edge %0 sharding=<@mesh, [{"x"}]> : tensor<8xf32>
        %2 = stablehlo.negate %1 : tensor<8xf32>

    After::

        %0 = stablehlo.optimization_barrier %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
            : tensor<8xf32>
        %1 = stablehlo.negate %0 : tensor<8xf32>
    """

    name = "sdy-sink-data-flow-edges"
    sink_debug_sharding_origins: bool = False
    sink_debug_propagation_edge_sharding: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.sink_debug_sharding_origins or self.sink_debug_propagation_edge_sharding:
            raise error(op, f"'{self.name}' cannot move the record of where shardings come from: leave its options off")
        for operation in operations(op):
            flow = data_flow_of(operation)
            if flow is None:
                continue
            for owners, set_shardings in (
                (flow.block_argument_edge_owners(operation), flow.set_block_argument_edge_owner_shardings),
                (flow.result_edge_owners(operation), flow.set_result_edge_owner_shardings),
            ):
                shardings = edge_shardings(owners)
                if shardings is not None:
                    set_shardings(operation, shardings)
        for edge in operations_of(op, DataFlowEdgeOp):
            Rewriter.replace_op(edge, [], [edge.input])
