"""`sdy-sink-data-flow-edges`: move the shardings of data-flow edges to their owners, and remove the edges."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.ir import Attribute, SSAValue

from sdy.dialect.attributes import (
    BLOCK_ARG_PROPAGATION_EDGES,
    BLOCK_ARG_SHARDING_ORIGINS,
    PROPAGATION_EDGES,
    RESULT_PROPAGATION_EDGES,
    RESULT_SHARDING_ORIGINS,
    SHARDING_ORIGINS,
)
from sdy.dialect.interfaces import ShardableDataFlow, data_flow_of
from sdy.dialect.ops import DataFlowEdgeOp
from sdy.ir.editing import AnalysisPreservingPass, replace
from sdy.ir.walking import operations_of, operations_with
from sdy.passes.common.data_flow_edges import edge_of, edge_shardings


@dataclass(frozen=True)
class SinkDataFlowEdgesPass(AnalysisPreservingPass):
    """Remove every `sdy.data_flow_edge`, and move its sharding to its input.

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
    """Move the edges' `sdy.sharding_origins` attributes to the operation."""
    sink_debug_propagation_edge_sharding: bool = False
    """Move the edges' `sdy.propagation_edges` attributes to the operation."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for operation in operations_with(op, ShardableDataFlow):
            flow = data_flow_of(operation)
            if flow is None:
                continue
            for owners, set_shardings, origins, propagation_edges in (
                (
                    flow.block_argument_edge_owners(operation),
                    flow.set_block_argument_edge_owner_shardings,
                    BLOCK_ARG_SHARDING_ORIGINS,
                    BLOCK_ARG_PROPAGATION_EDGES,
                ),
                (
                    flow.result_edge_owners(operation),
                    flow.set_result_edge_owner_shardings,
                    RESULT_SHARDING_ORIGINS,
                    RESULT_PROPAGATION_EDGES,
                ),
            ):
                shardings = edge_shardings(owners)
                if shardings is not None:
                    set_shardings(operation, shardings)
                if self.sink_debug_sharding_origins:
                    operation.attributes[origins] = _of_edges(owners, SHARDING_ORIGINS)
                if self.sink_debug_propagation_edge_sharding:
                    operation.attributes[propagation_edges] = _of_edges(owners, PROPAGATION_EDGES)
        for edge in operations_of(op, DataFlowEdgeOp):
            replace(edge, [edge.input])


def _of_edges(owners: Sequence[SSAValue], name: str) -> ArrayAttr[Attribute]:
    """Return the attributes `name` of the edges of `owners` that have it."""
    edges = [edge for owner in owners if (edge := edge_of(owner)) is not None]
    return ArrayAttr([edge.attributes[name] for edge in edges if name in edge.attributes])
