"""Implementations of operations as tables: the operation, and the function of arrays that computes it.

What differs from one elementwise operation to the next is one NumPy function, so that is all that its entry says.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from xdsl.interpreter import Interpreter, InterpreterFunctions, PythonValues, impl, register_impls
from xdsl.ir import Operation

from sdy.callables import Function
from sdy.interpreter.quantization import dequantized, on_numbers, quantization, quantized
from sdy.interpreter.values import widened

Kernel: TypeAlias = Function[Any]
"""A function of the operands, one array each, to the result; it need not be of the result's type."""

Implementation: TypeAlias = Callable[[Interpreter, Any, PythonValues], PythonValues]
"""A function of the interpreter, the operation and the values of its operands to those of its results."""


def elementwise(
    kernels: Mapping[type[Operation], Kernel], *, wide: bool = True
) -> dict[type[Operation], Implementation]:
    """Implementations of operations with one result; `wide` gives kernels arrays of types that NumPy computes with."""

    def implementation(kernel: Kernel) -> Implementation:
        def run(interpreter: Interpreter, op: Operation, args: PythonValues) -> PythonValues:
            numbers = [dequantized(op, operand, array) for operand, array in zip(op.operands, args, strict=True)]
            return (quantized(op, op.results[0], kernel(*map(widened, numbers) if wide else numbers)),)

        return run

    return {op: implementation(kernel) for op, kernel in kernels.items()}


def numeric(implementations: Mapping[type[Operation], Implementation]) -> dict[type[Operation], Implementation]:
    """The same for operands and results of which some are quantized."""

    def numeric_implementation(implementation: Implementation) -> Implementation:
        def run(interpreter: Interpreter, op: Operation, args: PythonValues) -> PythonValues:
            if not any(map(quantization, (*op.operands, *op.results))):
                return implementation(interpreter, op, args)
            numbers = [dequantized(op, operand, array) for operand, array in zip(op.operands, args, strict=True)]
            results = implementation(interpreter, on_numbers(op), tuple(numbers))
            return tuple(quantized(op, value, array) for value, array in zip(op.results, results, strict=True))

        return run

    return {op: numeric_implementation(implementation) for op, implementation in implementations.items()}


def functions(implementations: Mapping[type[Operation], Implementation]) -> InterpreterFunctions:
    """What an interpreter of xDSL is given so that it knows these operations."""

    def method(op_type: type[Operation], implementation: Implementation) -> Any:
        def run(_: InterpreterFunctions, interpreter: Interpreter, op: Operation, args: PythonValues) -> PythonValues:
            return implementation(interpreter, op, args)

        return impl(op_type)(run)

    methods = {op_type.name: method(op_type, run) for op_type, run in implementations.items()}
    return register_impls(type("Implementations", (InterpreterFunctions,), methods))()
