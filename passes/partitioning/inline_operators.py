"""`sdy-inline-operators`: each call of an annotated operator is replaced by what its function does."""

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Operation, Region
from xdsl.passes import ModulePass

from sdy.diagnostics import error, quoted
from sdy.ir.walking import operations, operations_at_top
from sdy.operators.call import OperatorCall, call_of
from sdy.operators.registry import operator_of
from sdy.passes.common.regions import inline_body
from sdy.passes.common.symbols import Symbols


class InlineOperatorsPass(ModulePass):
    """Replace each call of an annotated operator by the operations of its function, for operands of these types.

    Before::

        %0 = stablehlo.custom_call @double(%arg0) {sdy.operator = "double()"} : (tensor<8xf32>) -> tensor<8xf32>

    After::

        %0 = stablehlo.add %arg0, %arg0 : tensor<8xf32>

    An operator that no function is registered for is an error. So is one whose function does not take these operands,
    or gives results of other types, as one may whose sizes are not those of its arguments when these are a device's
    part of the whole.
    """

    name = "sdy-inline-operators"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        inline_operators(op)


def inline_operators(module: ModuleOp) -> None:
    """Replace the calls of annotated operators in `module` by the programs of their functions."""
    programs = _Programs(module)
    for op in operations(module):
        if (call := call_of(op)) is not None:
            inline_body(op, programs.body(op, call).clone().block)


class _Programs:
    """What the operators' functions do, made once for operands of the same types."""

    def __init__(self, module: ModuleOp) -> None:
        self._symbols = Symbols(module)
        self._mains: dict[tuple[OperatorCall, tuple[Attribute, ...]], FuncOp] = {}

    def body(self, op: Operation, call: OperatorCall) -> Region:
        """The body of a function that computes `op`. What it calls is in the module."""
        key = call, tuple(op.operand_types)
        if key not in self._mains:
            self._mains[key] = self._make(op, call)
        main = self._mains[key]
        given, expected = main.function_type.outputs.data, tuple(op.result_types)
        if given != expected:
            raise error(op, f"operator '{call.name}' gives {quoted(given)} where {quoted(expected)} is expected")
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
