"""Inlining of calls in manual computations.

A function that is called in a manual computation would otherwise not know the manual axes around the call.
"""

from collections.abc import Iterable

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp

from sdy.dialect.ops import ManualComputationOp
from sdy.ir.building import copy_body
from sdy.ir.editing import inline_body
from sdy.ir.locations import call_site
from sdy.ir.walking import invalidate, operations_of
from sdy.passes.common.call_graph import callee, recursion_error
from sdy.passes.common.symbols import Symbols


def inline_calls_in(computations: Iterable[ManualComputationOp], module: ModuleOp) -> None:
    """Inline the calls in `computations`, recursively, and remove private functions that are no longer called.

    Raises:
        DiagnosticError: If a function is recursive.
    """
    symbols = Symbols(module)
    called: dict[FuncOp, None] = {}
    for computation in computations:
        pending = [(call, ()) for call in operations_of(computation, CallOp)]
        while pending:
            call, callers = pending.pop()
            function = callee(call, symbols)
            if function in callers:
                raise recursion_error(call, function, "inlined")
            if len(function.body.blocks) == 1:
                called[function] = None
                pending += [(inner, (*callers, function)) for inner in _inline(call, function)]
    still = {call.callee.root_reference.data for call in operations_of(module, CallOp)}
    for function in called:
        is_private = function.sym_visibility is not None and function.sym_visibility.data == "private"
        if is_private and function.sym_name.data not in still:
            symbols.erase(function)


def _inline(call: CallOp, function: FuncOp) -> list[CallOp]:
    """Inline `call`; return the calls in the inlined body."""
    body = copy_body(function.body)
    inside = list(body.walk())
    for op in inside:
        op.location = call_site(op.location, call.location)
    inline_body(call, body.block)
    invalidate()
    return [op for op in inside if isinstance(op, CallOp)]
