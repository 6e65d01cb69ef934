"""Tables of implementations: operation class -> function on arrays.

The entry of an elementwise operation is a NumPy function, its kernel.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from xdsl.interpreter import Interpreter, InterpreterFunctions, PythonValues, impl, register_impls
from xdsl.ir import Operation

from sdy.interpreter.quantization import dequantized, on_expressed_types, quantization, quantized
from sdy.interpreter.values import widened
from sdy.type_helpers import Function

Kernel: TypeAlias = Function[Any]
"""A function from the operands' arrays to the result's array, which is converted to the result's type."""

Implementation: TypeAlias = Callable[[Interpreter, Any, PythonValues], PythonValues]
"""A function (interpreter, operation, operand values) -> result values."""


def elementwise(
    kernels: Mapping[type[Operation], Kernel], *, wide: bool = True
) -> dict[type[Operation], Implementation]:
    """Create implementations of operations with one result from their kernels.

    Args:
        kernels: The kernel of each operation.
        wide: Whether narrow types are converted to native NumPy types before the kernel.
    """

    def implementation(kernel: Kernel) -> Implementation:
        def run(interpreter: Interpreter, op: Operation, args: PythonValues) -> PythonValues:
            numbers = [dequantized(op, operand, array) for operand, array in zip(op.operands, args, strict=True)]
            return (quantized(op, op.results[0], kernel(*map(widened, numbers) if wide else numbers)),)

        return run

    return {op: implementation(kernel) for op, kernel in kernels.items()}


def numeric(implementations: Mapping[type[Operation], Implementation]) -> dict[type[Operation], Implementation]:
    """Extend implementations to quantized operands and results."""

    def numeric_implementation(implementation: Implementation) -> Implementation:
        def run(interpreter: Interpreter, op: Operation, args: PythonValues) -> PythonValues:
            if not any(map(quantization, (*op.operands, *op.results))):
                return implementation(interpreter, op, args)
            numbers = [dequantized(op, operand, array) for operand, array in zip(op.operands, args, strict=True)]
            results = implementation(interpreter, on_expressed_types(op), tuple(numbers))
            return tuple(quantized(op, value, array) for value, array in zip(op.results, results, strict=True))

        return run

    return {op: numeric_implementation(implementation) for op, implementation in implementations.items()}


def functions(implementations: Mapping[type[Operation], Implementation]) -> InterpreterFunctions:
    """Convert a table of implementations to the form that xDSL's interpreter registers."""

    def method(op_type: type[Operation], implementation: Implementation) -> Any:
        def run(_: InterpreterFunctions, interpreter: Interpreter, op: Operation, args: PythonValues) -> PythonValues:
            return implementation(interpreter, op, args)

        return impl(op_type)(run)

    methods = {op_type.name: method(op_type, run) for op_type, run in implementations.items()}
    return register_impls(type("Implementations", (InterpreterFunctions,), methods))()
