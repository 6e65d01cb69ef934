"""`sdy-export-named-computations`: outline each named computation as a function."""

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp

from sdy.dialect.attributes import TensorShardingPerValueAttr
from sdy.dialect.ops import NamedComputationOp
from sdy.dialect.shardings import set_func_arg_shardings, set_result_shardings
from sdy.ir.editing import AnalysisPreservingPass, move_body, replace
from sdy.ir.walking import innermost_first, operations_of
from sdy.passes.common.call_graph import EXECUTION_THREAD, ORIGINAL_NAME
from sdy.passes.common.data_flow_edges import edge_shardings, remove_edges
from sdy.passes.common.function_shardings import Shardings
from sdy.passes.common.symbols import Symbols
from sdy.passes.propagation.provenance.history import succeed


class ExportNamedComputationsPass(AnalysisPreservingPass):
    """Move the body of each named computation to a private function at the end of the module, and call the function.

    Before::

        %0 = sdy.named_computation<"f">(%arg0) out_shardings=[<@mesh, [{"x"}]>] (%arg1: tensor<8xf32>) {
          %1 = stablehlo.negate %arg1 : tensor<8xf32>
          sdy.return %1 : tensor<8xf32>
        } : (tensor<8xf32>) -> tensor<8xf32>

    After::

        %0 = call @f(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
            : (tensor<8xf32>) -> tensor<8xf32>
        ...
        func.func private @f(%arg0: tensor<8xf32>) -> tensor<8xf32> attributes {sdy.original_func_name = "f"} {
          %0 = stablehlo.negate %arg0 : tensor<8xf32>
          return %0 : tensor<8xf32>
        }

    The shardings of the computation's data-flow edges become those of the arguments and of the call; the pass removes
    the edges.
    """

    name = "sdy-export-named-computations"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        export_named_computations(op)


def export_named_computations(module: ModuleOp) -> None:
    """Replace the named computations of `module` by calls of functions."""
    symbols = Symbols(module)
    for computation in innermost_first(operations_of(module, NamedComputationOp)):
        succeed(module, _export(computation, symbols), computation)


def _export(computation: NamedComputationOp, symbols: Symbols) -> CallOp:
    """Replace `computation` by a call, and return the call."""
    arguments, results = computation.body.block.args, computation.results
    in_shardings = edge_shardings(arguments) or _own_shardings(computation.in_shardings)
    out_shardings = edge_shardings(results) or _own_shardings(computation.out_shardings)
    remove_edges(arguments)
    remove_edges(results)
    function = _function(computation, in_shardings)
    call = CallOp(symbols.insert(function), computation.operands, computation.result_types)
    call.attributes = {name: value for name, value in computation.attributes.items() if name != EXECUTION_THREAD}
    call.location = computation.location
    if out_shardings is not None:
        set_result_shardings(call, out_shardings)
    replace(computation, call)
    return call


def _own_shardings(shardings: TensorShardingPerValueAttr | None) -> Shardings | None:
    return shardings.data if shardings is not None else None


def _function(computation: NamedComputationOp, in_shardings: Shardings | None) -> FuncOp:
    """Move the body of `computation` to a new function."""
    name = computation.computation_name.data
    types = ([argument.type for argument in computation.body.block.args], computation.result_types)
    function = FuncOp(name, types, move_body(computation.body, ReturnOp), visibility="private")
    function.location = computation.location
    function.attributes[ORIGINAL_NAME] = StringAttr(name)
    if EXECUTION_THREAD in computation.attributes:
        function.attributes[EXECUTION_THREAD] = computation.attributes[EXECUTION_THREAD]
    if in_shardings is not None:
        set_func_arg_shardings(function, in_shardings)
    return function
