"""What modules, functions and calls must be, in MLIR's words: xDSL's own verifiers use others."""

from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Operation
from xdsl.traits import SymbolTable

from sdy.diagnostics import error, op_error


def _check_module(module: ModuleOp) -> None:
    for name in module.attributes:
        if "." not in name and name != "sym_visibility":
            raise op_error(module, f"can only contain attributes with dialect-prefixed names, found: '{name}'")
    symbols: dict[str, Operation] = {}
    for op in module.ops:
        symbol = op.properties.get("sym_name")
        if not isinstance(symbol, StringAttr):
            continue
        if (existing := symbols.setdefault(symbol.data, op)) is not op:
            raise error(
                op, f"redefinition of symbol named '{symbol.data}'", (existing, "see existing symbol definition here")
            )


def _check_call(call: CallOp) -> None:
    callee = SymbolTable.lookup_symbol(call, call.callee)
    if not isinstance(callee, FuncOp):
        raise op_error(call, f"'{call.callee.string_value()}' does not reference a valid function")
    for kind, given, wanted in (
        ("operand", call.operand_types, callee.function_type.inputs.data),
        ("result", call.result_types, callee.function_type.outputs.data),
    ):
        if len(given) != len(wanted):
            raise op_error(call, f"incorrect number of {kind}s for callee")
        for number, (one, other) in enumerate(zip(given, wanted, strict=True)):
            if one != other:
                expected = f"expected {kind} type '{other}', but provided '{one}' for {kind} number {number}"
                raise op_error(call, f"{kind} type mismatch: {expected}")


def _check_return(op: ReturnOp) -> None:
    func = op.parent_op()
    if not isinstance(func, FuncOp):
        raise op_error(op, "expects parent op 'func.func'")
    wanted = func.function_type.outputs.data
    if len(op.operands) != len(wanted):
        raise op_error(
            op,
            f"has {len(op.operands)} operands, but enclosing function (@{func.sym_name.data}) returns {len(wanted)}",
        )
    for number, (given, result) in enumerate(zip(op.operand_types, wanted, strict=True)):
        if given != result:
            raise error(
                op,
                f"type of return operand {number} ('{given}') doesn't match function result type ('{result}') "
                f"in function @{func.sym_name.data}",
            )


CHECKS: dict[type[Operation], Callable[[Any], None]] = {
    ModuleOp: _check_module,
    CallOp: _check_call,
    ReturnOp: _check_return,
}
"""What to check before an operation's own verifier runs."""
