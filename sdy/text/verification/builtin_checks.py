"""What MLIR's own operations must be, in its words, where xDSL's verifiers use others or ask less."""

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


def _check_linalg_reduce(op: Operation) -> None:
    type_, dimensions = op.operands[0].type, op.properties["dimensions"]
    rank = type_.get_num_dims() if isinstance(type_, ShapedType) else 0
    if isinstance(dimensions, DenseArrayBase) and any(not 0 <= dim < rank for dim in dimensions.iter_values()):
        raise op_error(op, f"dimensions for reduction should be in the range [0, {rank - 1}].")


def _check_linalg_index(op: Operation) -> None:
    around, dim = op.parent_op(), op.properties["dim"]
    iterators = around.properties.get("iterator_types") if around else None
    if not isinstance(iterators, ArrayAttr) or not isinstance(dim, IntegerAttr):
        return  # which xDSL refuses
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
"""What to check before an operation's own verifier runs, by the operation's name."""
