"""Verifiers of builtin, func and linalg operations, where xDSL's check less than MLIR's or word it differently."""

from collections.abc import Callable
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerAttr, ModuleOp, ShapedType, StringAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation
from xdsl.traits import SymbolTable

from sdy.diagnostics import error, op_error
from sdy.ir.walking import operations_at_top


def _check_module(module: ModuleOp) -> None:
    for name in module.attributes:
        if "." not in name and name != "sym_visibility":
            raise op_error(module, f"can only contain attributes with dialect-prefixed names, found: '{name}'")
    symbols: dict[str, Operation] = {}
    for op in operations_at_top(module):
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
    for kind, actual, expected_types in (
        ("operand", call.operand_types, callee.function_type.inputs.data),
        ("result", call.result_types, callee.function_type.outputs.data),
    ):
        if len(actual) != len(expected_types):
            raise op_error(call, f"incorrect number of {kind}s for callee")
        for number, (one, other) in enumerate(zip(actual, expected_types, strict=True)):
            if one != other:
                expected = f"expected {kind} type '{other}', but provided '{one}' for {kind} number {number}"
                raise op_error(call, f"{kind} type mismatch: {expected}")


def _check_return(op: ReturnOp) -> None:
    func = op.parent_op()
    if not isinstance(func, FuncOp):
        raise op_error(op, "expects parent op 'func.func'")
    expected = func.function_type.outputs.data
    if len(op.operands) != len(expected):
        raise op_error(
            op,
            f"has {len(op.operands)} operands, but enclosing function (@{func.sym_name.data}) returns {len(expected)}",
        )
    for number, (actual, result) in enumerate(zip(op.operand_types, expected, strict=True)):
        if actual != result:
            raise error(
                op,
                f"type of return operand {number} ('{actual}') doesn't match function result type ('{result}') "
                f"in function @{func.sym_name.data}",
            )


def _check_linalg_reduce(op: Operation) -> None:
    type_, dimensions = op.operands[0].type, op.properties["dimensions"]
    rank = type_.get_num_dims() if isinstance(type_, ShapedType) else 0
    if isinstance(dimensions, DenseArrayBase) and any(not 0 <= dim < rank for dim in dimensions.iter_values()):
        raise op_error(op, f"dimensions for reduction should be in the range [0, {rank - 1}].")


def _check_linalg_index(op: Operation) -> None:
    parent, dim = op.parent_op(), op.properties["dim"]
    iterators = parent.properties.get("iterator_types") if parent else None
    if not isinstance(iterators, ArrayAttr) or not isinstance(dim, IntegerAttr):
        return  # xDSL's verifier reports it
    number, loops = dim.value.data, len(cast(ArrayAttr[Attribute], iterators))
    if not 0 <= number < loops:
        bound = f"lower than the number of loops ({loops}) of the enclosing LinalgOp"
        raise op_error(op, f"expected dim ({number}) to be {bound}")


CHECKS: dict[str, Callable[[Any], None]] = {
    "builtin.module": _check_module,
    "func.call": _check_call,
    "func.return": _check_return,
    "linalg.index": _check_linalg_index,
    "linalg.reduce": _check_linalg_reduce,
}
"""Checks that run before an operation's own verifier, by operation name."""
