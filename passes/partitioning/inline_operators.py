"""`sdy-inline-operators`: inlining of annotated operator calls."""

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Block, Operation, Region
from xdsl.passes import ModulePass

from sdy.diagnostics import error, quoted
from sdy.dialect.attributes import WORK
from sdy.ir.editing import inline_body
from sdy.ir.fast_access import is_terminator
from sdy.ir.shapes import shape_of
from sdy.ir.walking import operations, operations_at_top
from sdy.operators.call import OperatorCall, call_of
from sdy.operators.registry import operator_of
from sdy.passes.common.properties import value_bytes
from sdy.passes.common.symbols import Symbols


class InlineOperatorsPass(ModulePass):
    """Replace each call of an annotated operator by the operations of its function, traced for the operand types.

    Before::

        %0 = stablehlo.custom_call @double(%arg0) {sdy.operator = "double()"} : (tensor<8xf32>) -> tensor<8xf32>

    After::

        %0 = stablehlo.add %arg0, %arg0 : tensor<8xf32>

    An operator without a registered function is an error, as is a function that rejects the operands or returns results
    of other types. A function can do so on a device's shards if it depends on sizes other than those of its arguments.
    """

    name = "sdy-inline-operators"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        inline_operators(op)


def inline_operators(module: ModuleOp) -> None:
    """Replace the calls of annotated operators in `module` by the operations of their functions."""
    programs = _Programs(module)
    for op in operations(module):
        if (call := call_of(op)) is not None:
            body = programs.body(op, call).clone().block
            mark_work(op, call, body)
            inline_body(op, body)


def mark_work(op: Operation, call: OperatorCall, body: Block) -> None:
    """Mark the operations of `body` with the declared work of the operator that they replace, for cost models."""
    operator = operator_of(call)
    work = operator and operator.declared_work(call, [shape_of(value) for value in op.operands])
    if not work:
        return
    moved = sum(map(value_bytes, (*op.operands, *op.results))) if work.bytes is None else work.bytes
    text = f"{work.operations} {work.element_type or 'vector'} {work.precision} {moved}"
    for inner in body.ops:
        if not is_terminator(inner):
            inner.attributes[WORK] = StringAttr(text)
            text = ""


class _Programs:
    """The lowered functions of operators, memoized by call and operand types."""

    def __init__(self, module: ModuleOp) -> None:
        self._symbols = Symbols(module)
        self._mains: dict[tuple[OperatorCall, tuple[Attribute, ...]], FuncOp] = {}

    def body(self, op: Operation, call: OperatorCall) -> Region:
        """Return the body of the function that computes `op`; functions that it calls are inserted into the module."""
        key = call, tuple(op.operand_types)
        if key not in self._mains:
            self._mains[key] = self._make(op, call)
        main = self._mains[key]
        returned, expected = main.function_type.outputs.data, tuple(op.result_types)
        if returned != expected:
            raise error(op, f"operator '{call.name}' returns {quoted(returned)} where {quoted(expected)} is expected")
        return main.body

    def _make(self, op: Operation, call: OperatorCall) -> FuncOp:
        operator = operator_of(call)
        if operator is None:
            raise error(op, f"no operator '{call.operator}' is registered: import what registers it")
        try:
            module = operator.module(call, op.operand_types)
        except (TypeError, ValueError) as problem:
            failure = f"operator '{call.name}' cannot be computed for operands of types {quoted(op.operand_types)}"
            raise error(op, f"{failure}: {problem}") from None
        functions = [function for function in operations_at_top(module) if isinstance(function, FuncOp)]
        main = next(function for function in functions if function.sym_name.data == "main")
        names: dict[str, str] = {}
        for function in functions:
            function.detach()
            if function is not main:
                old = function.sym_name.data
                names[old] = self._symbols.insert(function)
        for function in functions:
            for inner in operations(function):
                if isinstance(inner, CallOp):
                    inner.callee = SymbolRefAttr(names[inner.callee.string_value()])
        return main
