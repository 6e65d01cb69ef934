"""`inline`: replace calls by the bodies of their callees."""

from collections.abc import Callable

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from sdy.diagnostics import LostShardingWarning, warn
from sdy.dialect.shardings import has_result_shardings
from sdy.ir.building import copy_body
from sdy.ir.editing import inline_body
from sdy.ir.locations import call_site
from sdy.passes.common.call_graph import callee, callees_first, calls_in
from sdy.passes.common.canonicalize import canonicalize
from sdy.passes.common.function_shardings import function_argument_shardings, function_result_shardings
from sdy.passes.common.symbol_dce import erase_dead_symbols
from sdy.passes.common.symbols import Symbols

_NO_INLINE = "no_inline"


class InlinePass(ModulePass):
    """Inline calls, canonicalize the result, and remove private functions that are no longer called.

    Before::

        %0 = call @f(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
        ...
        func.func private @f(%arg0: tensor<8xf32>) -> tensor<8xf32> {
          %0 = stablehlo.negate %arg0 : tensor<8xf32>
          return %0 : tensor<8xf32>
        }

    After::

        %0 = stablehlo.negate %arg0 : tensor<8xf32>

    A call is kept if it or the function has the attribute `no_inline`, if the function has no body or several blocks,
    or if it is recursive. The shardings of the call, and of the function's arguments and results, are lost with a
    warning; `sdy-import-func-calls` keeps them.
    """

    name = "inline"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        inline(op)


def inline(module: ModuleOp) -> None:
    """Inline the calls of `module`, canonicalize it and erase the functions that are no longer called."""
    inline_calls(module, _warn_of_shardings)
    canonicalize(module)
    erase_dead_symbols(module)


def inline_calls(
    module: ModuleOp,
    before: Callable[[CallOp, FuncOp], None] = lambda call, function: None,
    *,
    selects: Callable[[CallOp, FuncOp], bool] = lambda call, function: True,
) -> None:
    """Replace each call that `selects` selects by its callee's body, after calling `before`; the functions are kept.

    The location of an inlined operation becomes a call site: its own, at that of the call.
    """
    symbols = Symbols(module)
    finished: set[FuncOp] = set()
    for function in callees_first(module):
        for call in calls_in(function):
            called = callee(call, symbols)
            if called in finished and _may_be_inlined(call, called) and selects(call, called):
                before(call, called)
                body = copy_body(called.body)
                for op in body.walk():
                    op.location = call_site(op.location, call.location)
                inline_body(call, body.block)
        finished.add(function)


def _may_be_inlined(call: CallOp, function: FuncOp) -> bool:
    return len(function.body.blocks) == 1 and not _is_kept(call) and not _is_kept(function)


def _is_kept(operation: Operation) -> bool:
    return operation.get_attr_or_prop(_NO_INLINE) is not None


def _warn_of_shardings(call: CallOp, function: FuncOp) -> None:
    if has_result_shardings(call) or function_argument_shardings(function) or function_result_shardings(function):
        warn(
            call,
            f"inlining @{function.sym_name.data} loses shardings; use sdy-import-func-calls to keep them",
            category=LostShardingWarning,
        )
