"""`sdy-pre-order-funcs`: move each function after the functions that call it."""

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import InsertPoint

from sdy.ir.editing import AnalysisPreservingPass, insert
from sdy.ir.walking import operations_at_top
from sdy.passes.common.call_graph import callers_first


class PreOrderFuncsPass(AnalysisPreservingPass):
    """Sort the functions of the module from callers to callees, the order in which propagation visits them.

    Before::

        func.func private @callee(...) { ... }
        func.func public @main(...) { ... call @callee ... }

    After::

        func.func public @main(...) { ... call @callee ... }
        func.func private @callee(...) { ... }
    """

    name = "sdy-pre-order-funcs"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ordered = callers_first(op)
        if operations_at_top(op)[-len(ordered) :] == ordered:
            return
        for function in ordered:
            function.detach()
            insert(function, InsertPoint.at_end(op.body.block))
