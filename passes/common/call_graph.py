"""Which function calls which: the orders in which passes visit functions, and copies of whole call trees."""

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation

from sdy.diagnostics import DiagnosticError, error
from sdy.ir.walking import operations_at_top, operations_of
from sdy.passes.common.symbols import Symbols

ORIGINAL_NAME = "sdy.original_func_name"
"""The attribute of a copied function that names the function it was copied from."""
EXECUTION_THREAD = "execution_thread"
"""The attribute of a function, or of its inlined body, that names the thread it runs on."""


def functions(module: ModuleOp) -> list[FuncOp]:
    """The functions of `module` that have a body, in order."""
    return [op for op in operations_at_top(module) if isinstance(op, FuncOp) and not op.is_declaration]


def find_main_function(module: ModuleOp) -> FuncOp | None:
    """The function that the program starts in: the only one, or `@main`; None if there is neither."""
    every = [op for op in operations_at_top(module) if isinstance(op, FuncOp)]
    if len(every) == 1:
        return every[0]
    return next((function for function in every if function.sym_name.data == "main"), None)


def main_function(module: ModuleOp) -> FuncOp:
    """The function that the program starts in: the only one, or `@main`; DiagnosticError if there is neither."""
    if (main := find_main_function(module)) is None:
        raise error(module, "expected a function named @main, or a single function")
    return main


def calls_in(root: Operation) -> Sequence[CallOp]:
    """The calls in `root`, outer ones first."""
    return operations_of(root, CallOp)


def calls_by_function(module: ModuleOp) -> dict[Operation, list[CallOp]]:
    """The calls in each function that has some, outer ones first."""
    found: dict[Operation, list[CallOp]] = {}
    for call in calls_in(module):
        function = call
        while (parent := function.parent_op()) is not module:
            assert parent is not None
            function = parent
        found.setdefault(function, []).append(call)
    return found


def callee(call: CallOp, symbols: Symbols) -> FuncOp:
    """The function that `call` calls; DiagnosticError if there is none of that name."""
    function = symbols.function(call.callee.root_reference.data)
    if function is None:
        raise error(call, f"'func.call' op '{call.callee.root_reference.data}' does not reference a valid function")
    return function


def set_callee(call: CallOp, name: str) -> None:
    """Make `call` call the function of this name."""
    call.properties["callee"] = SymbolRefAttr(name)


def callees_first(module: ModuleOp) -> list[FuncOp]:
    """The functions with a body, each after the functions that it calls."""
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
    """The functions with a body, each before the functions that it calls."""
    return callees_first(module)[::-1]


def original_name(function: FuncOp) -> str:
    """The name of the function that `function` was copied from, its own if it was not copied."""
    name = function.attributes.get(ORIGINAL_NAME)
    return name.data if isinstance(name, StringAttr) else function.sym_name.data


def copy_call_tree(function: FuncOp, symbols: Symbols, callers: tuple[str, ...] = ()) -> str:
    """Add a copy of `function` that calls copies of the functions it calls, and return the copy's name.

    The copies of the callees come first in the module. Raises DiagnosticError on a function that calls itself.
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
    """An error to raise at a call of a function from within it; the message ends in what it cannot be for that."""
    name = function.sym_name.data
    message = f"'@{name}' calls itself, directly or through others, so that it cannot be {impossible}"
    return error(call, message, (function, "this is the function"))
