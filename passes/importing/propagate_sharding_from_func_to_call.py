"""`sdy-propagate-sharding-from-func-to-call`: copy result shardings from functions to their calls."""

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from sdy.dialect.shardings import has_result_shardings, set_result_shardings
from sdy.ir.editing import AnalysisPreservingPass
from sdy.passes.common.call_graph import callee, calls_in
from sdy.passes.common.function_shardings import function_result_shardings
from sdy.passes.common.symbols import Symbols


class PropagateShardingFromFuncToCallPass(AnalysisPreservingPass):
    """Copy the result shardings of each called function to its calls that have none.

    Before::

        %0 = call @f(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
        ...
        func.func private @f(%arg0: tensor<8xf32>)
            -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})

    After::

        %0 = call @f(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
            : (tensor<8xf32>) -> tensor<8xf32>
    """

    name = "sdy-propagate-sharding-from-func-to-call"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        symbols = Symbols(op)
        for call in calls_in(op):
            shardings = function_result_shardings(callee(call, symbols))
            if shardings is not None and not has_result_shardings(call):
                set_result_shardings(call, shardings)
