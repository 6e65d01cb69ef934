"""`sdy-flatten-call-graph`: copy functions so that each call has its own."""

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from sdy.ir.editing import AnalysisPreservingPass
from sdy.passes.common.call_graph import callee, callees_first, calls_by_function, copy_call_tree, set_callee
from sdy.passes.common.symbols import Symbols


class FlattenCallGraphPass(AnalysisPreservingPass):
    """Copy functions until each is called at most once, so that every call can be sharded independently.

    Before::

        %0 = call @f(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
        %1 = call @f(%0) : (tensor<8xf32>) -> tensor<8xf32>

    After::

        %0 = call @f(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
        %1 = call @f_0(%0) : (tensor<8xf32>) -> tensor<8xf32>
        ...
        func.func private @f_0(...) attributes {sdy.original_func_name = "f"} { ... }

    After propagation, `sdy-unflatten-call-graph` merges copies with equal shardings.
    """

    name = "sdy-flatten-call-graph"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        symbols = Symbols(op)
        calls = calls_by_function(op)
        called: set[str] = set()
        for function in callees_first(op):
            for call in calls.get(function, ()):
                target = callee(call, symbols)
                name = target.sym_name.data
                if name in called:
                    set_callee(call, copy_call_tree(target, symbols))
                called.add(name)
