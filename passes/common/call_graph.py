"""The call graph: traversal orders of functions, and copies of call trees."""

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation

from sdy.diagnostics import DiagnosticError, error
from sdy.ir.walking import operations_at_top, operations_of
from sdy.passes.common.symbols import Symbols

ORIGINAL_NAME = "sdy.original_func_name"
"""Attribute of a copied function: the name of the original."""
EXECUTION_THREAD = "execution_thread"
"""Attribute of a function, or of its inlined body: the name of its execution thread."""


def functions(module: ModuleOp) -> list[FuncOp]:
    """Return the functions of `module` that have a body, in order."""
    return [op for op in operations_at_top(module) if isinstance(op, FuncOp) and not op.is_declaration]


def find_main_function(module: ModuleOp) -> FuncOp | None:
    """Return the main function: the only one, or `@main`; None if neither exists."""
    every = [op for op in operations_at_top(module) if isinstance(op, FuncOp)]
    if len(every) == 1:
        return every[0]
    return next((function for function in every if function.sym_name.data == "main"), None)


def main_function(module: ModuleOp) -> FuncOp:
    """Return the main function: the only one, or `@main`. Raises DiagnosticError if neither exists."""
    if (main := find_main_function(module)) is None:
        raise error(module, "expected a function named @main, or a single function")
    return main


def calls_in(root: Operation) -> Sequence[CallOp]:
    """Return the calls in `root`, in pre-order."""
    return operations_of(root, CallOp)


def calls_by_function(module: ModuleOp) -> dict[Operation, list[CallOp]]:
    """Return the calls in each function that has calls, in pre-order."""
    calls: dict[Operation, list[CallOp]] = {}
    for call in calls_in(module):
        function = call
        while (parent := function.parent_op()) is not module:
            assert parent is not None
            function = parent
        calls.setdefault(function, []).append(call)
    return calls


def callee(call: CallOp, symbols: Symbols) -> FuncOp:
    """Return the callee of `call`. Raises DiagnosticError if it is undefined."""
    function = symbols.function(call.callee.root_reference.data)
    if function is None:
        raise error(call, f"'func.call' op '{call.callee.root_reference.data}' does not reference a valid function")
    return function


def set_callee(call: CallOp, name: str) -> None:
    """Set the callee of `call`."""
    call.properties["callee"] = SymbolRefAttr(name)


def callees_first(module: ModuleOp) -> list[FuncOp]:
    """Return the functions with a body, callees before callers."""
    symbols = Symbols(module)
    calls = calls_by_function(module)
    order: dict[FuncOp, None] = {}
    entered: set[FuncOp] = set()

    def visit(function: FuncOp) -> None:
        if function in entered or function.is_declaration:
            return
        entered.add(function)
        for call in calls.get(function, ()):
            visit(callee(call, symbols))
        order[function] = None

    for function in functions(module):
        visit(function)
    return list(order)


def callers_first(module: ModuleOp) -> list[FuncOp]:
    """Return the functions with a body, callers before callees."""
    return callees_first(module)[::-1]


def original_name(function: FuncOp) -> str:
    """Return the name of the function that `function` was copied from, or its own."""
    name = function.attributes.get(ORIGINAL_NAME)
    return name.data if isinstance(name, StringAttr) else function.sym_name.data


def copy_call_tree(function: FuncOp, symbols: Symbols, callers: tuple[str, ...] = ()) -> str:
    """Copy `function` and, recursively, its callees; return the copy's name.

    The copies of the callees come first in the module. Raises DiagnosticError on recursion.
    """
    callers = (*callers, function.sym_name.data)
    copy = function.clone()
    copy.attributes[ORIGINAL_NAME] = StringAttr(original_name(function))
    for call in calls_in(copy):
        called = callee(call, symbols)
        if called.sym_name.data in callers:
            raise recursion_error(call, called, "copied for each of its calls")
        set_callee(call, copy_call_tree(called, symbols, callers))
    return symbols.insert(copy)


def recursion_error(call: CallOp, function: FuncOp, impossible: str) -> DiagnosticError:
    """Return the error of a recursive call; `impossible` completes "it cannot be ..."."""
    name = function.sym_name.data
    message = f"'@{name}' is recursive, so it cannot be {impossible}"
    return error(call, message, (function, "the function is defined here"))
