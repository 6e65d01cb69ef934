"""Origins of the results of a program: the defining operation, and random numbers that the result depends on."""

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
    """The origin of a result.

    Attributes:
        operation: The defining operation; the function if the result is an argument.
        drawn: A `stablehlo.rng` that the result depends on, if any; it draws different numbers in each run.
    """

    operation: Operation
    drawn: Operation | None


def result_origins(module: ModuleOp) -> list[ResultOrigin]:
    """Return the origin of each result of the main function of `module`."""
    symbols = Symbols(module)
    returned = main_function(module).get_return_op()
    draws = any(isinstance(op, RngOp) for op in operations(module))
    return [
        ResultOrigin(_defining_op(value, symbols), _random_source(value, symbols) if draws else None)
        for value in (returned.operands if returned else ())
    ]


def _defining_op(value: SSAValue, symbols: Symbols) -> Operation:
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


def _random_source(value: SSAValue, symbols: Symbols) -> Operation | None:
    """Return the first `stablehlo.rng` in the backward slice of `value`, through regions and calls."""
    seen: set[Operation] = set()
    worklist = [value.owner]
    while worklist:
        outer = worklist.pop()
        if not isinstance(outer, Operation) or outer in seen:
            continue
        for op in operations(outer):
            if isinstance(op, RngOp):
                return op
            seen.add(op)
            worklist += [operand.owner for operand in op.operands]
        for attribute in attributes_in(outer):
            if isinstance(attribute, SymbolRefAttr) and (function := symbols.function(attribute.root_reference.data)):
                worklist.append(function)
    return None
