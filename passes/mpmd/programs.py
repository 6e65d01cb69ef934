"""Programs that Shardy's MPMD compiler has partitioned, in the forms in which they are given."""

from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from sdy.diagnostics import error
from sdy.ir.walking import operations_at_top
from sdy.mpmd.topology import is_entry_point, is_mpmd_function
from sdy.text import parse


def partitioned_module(program: Any) -> ModuleOp:
    """Return a module, the text of one, a module of jaxlib's bindings or an `MpmdLowered` as a module."""
    partitioned = getattr(program, "partitioning_result", program)
    module = getattr(partitioned, "mpmd_module", partitioned)
    if isinstance(module, ModuleOp):
        return module
    return parse(module if isinstance(module, str) else module.operation.get_asm(enable_debug_info=True), "<mpmd>")


def entry_point(module: ModuleOp) -> FuncOp:
    """Return the public function with a topology.

    Raises:
        DiagnosticError: The module has no such function.
    """
    functions = (op for op in operations_at_top(module) if isinstance(op, FuncOp))
    for function in functions:
        if is_mpmd_function(function) and is_entry_point(function):
            return function
    raise error(module, "there is no public function with a topology to run")
