"""`sdy-propagate-to-func-results`: copy the shardings of returned values to function results."""

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import ReturnOp

from sdy.dialect.shardings import get_sharding, set_func_result_shardings
from sdy.ir.editing import AnalysisPreservingPass
from sdy.passes.common.call_graph import functions, main_function


class PropagateToFuncResultsPass(AnalysisPreservingPass):
    """Copy the shardings of returned values to the results of every function other than the main function.

    Before::

        func.func private @f(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
          return %arg0 : tensor<8xf32>

    After::

        func.func private @f(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
            -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
          return %arg0 : tensor<8xf32>

    A result whose value has no sharding loses its own. The result shardings of the main function are the user's and are
    kept.

    Raises:
        DiagnosticError: The module has several functions and none is `@main`.
    """

    name = "sdy-propagate-to-func-results"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        main = main_function(op)
        for function in functions(op):
            returned = function.get_return_op()
            if function is not main and isinstance(returned, ReturnOp):
                set_func_result_shardings(function, map(get_sharding, returned.arguments))
