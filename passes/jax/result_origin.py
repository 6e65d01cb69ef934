"""Where the results of a program come from: the operation that makes each, and whether it is said what that makes."""

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.dialects.func import CallOp
from xdsl.ir import Operation, OpResult, SSAValue

from sdy.ir.walking import attributes_in, operations
from sdy.passes.common.call_graph import main_function
from sdy.passes.common.symbols import Symbols
from sdy.stablehlo.random import RngOp


@dataclass(frozen=True)
class ResultOrigin:
    """The operation that makes a result, a function where it is an argument; `drawn` is one that it depends on.

    That draws numbers which nothing determines, so that they are others each time: a `stablehlo.rng`.
    """

    operation: Operation
    drawn: Operation | None


def result_origins(module: ModuleOp) -> list[ResultOrigin]:
    """Where each result of the main function of `module` comes from."""
    symbols = Symbols(module)
    returned = main_function(module).get_return_op()
    draws = any(isinstance(op, RngOp) for op in operations(module))
    return [
        ResultOrigin(_maker(value, symbols), _drawn(value, symbols) if draws else None)
        for value in (returned.operands if returned else ())
    ]


def _maker(value: SSAValue, symbols: Symbols) -> Operation:
    while isinstance(value, OpResult) and isinstance(call := value.op, CallOp):
        function = symbols.function(call.callee.root_reference.data)
        returned = function and function.get_return_op()
        if returned is None:
            return call
        value = returned.operands[value.index]
    if isinstance(value, OpResult):
        return value.op
    function = value.owner.parent_op()
    assert function is not None
    return function


def _drawn(value: SSAValue, symbols: Symbols) -> Operation | None:
    """The first `stablehlo.rng` that is met on the way back from `value`: all that is in an operation matters to it."""
    seen: set[Operation] = set()
    waiting = [value.owner]
    while waiting:
        outer = waiting.pop()
        if not isinstance(outer, Operation) or outer in seen:
            continue
        for op in operations(outer):
            if isinstance(op, RngOp):
                return op
            seen.add(op)
            waiting += [operand.owner for operand in op.operands]
        for attribute in attributes_in(outer):
            if isinstance(attribute, SymbolRefAttr) and (function := symbols.function(attribute.root_reference.data)):
                waiting.append(function)
    return None
