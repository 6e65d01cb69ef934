"""`sdy-add-func-data-flow-edges`: insert data-flow edges at the boundaries of called functions."""

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from sdy.dialect.ops import FuncDataFlowEdgeOp
from sdy.dialect.shardings import get_sharding, set_sharding
from sdy.ir.editing import AnalysisPreservingPass, after_value, insert_for_other_uses
from sdy.ir.shapes import is_static_tensor
from sdy.passes.common.call_graph import calls_in, functions, main_function


class AddFuncDataFlowEdgesPass(AnalysisPreservingPass):
    """Insert an `sdy.func_data_flow_edge` after every argument of a called function and every result of a call.

    Before::

        %0 = call @f(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
        return %0 : tensor<8xf32>
        ...
        func.func private @f(%arg0: tensor<8xf32>) -> tensor<8xf32> {
          return %arg0 : tensor<8xf32>

    After::

        %0 = call @f(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
        %1 = sdy.func_data_flow_edge %0 : tensor<8xf32>
        return %1 : tensor<8xf32>
        ...
        func.func private @f(%arg0: tensor<8xf32>) -> tensor<8xf32> {
          %0 = sdy.func_data_flow_edge %arg0 : tensor<8xf32>
          return %0 : tensor<8xf32>

    Propagation then goes through functions that several calls share. `sdy-sink-func-data-flow-edges` is the inverse.

    Raises:
        DiagnosticError: The module has several functions and none is `@main`.
    """

    name = "sdy-add-func-data-flow-edges"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        main = main_function(op)
        for function in functions(op):
            if function is not main:
                _add_edges(function.args)
        for call in calls_in(op):
            _add_edges(call.res)


def _add_edges(values: Sequence[SSAValue]) -> None:
    for value in reversed(values):
        if is_static_tensor(value.type):
            edge = FuncDataFlowEdgeOp(value)
            insert_for_other_uses(value, edge, after_value(value))
            sharding = get_sharding(value)
            if sharding is not None:
                set_sharding(edge.result, sharding)
