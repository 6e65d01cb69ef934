"""Loops, branches, calls, tuples and tokens."""

import numpy as np
from xdsl.dialects import func
from xdsl.interpreter import (
    Interpreter,
    InterpreterFunctions,
    PythonValues,
    ReturnedValues,
    TerminatorValue,
    impl_terminator,
    register_impls,
)
from xdsl.ir import Operation

from sdy import dialect, stablehlo
from sdy.diagnostics import op_error
from sdy.interpreter.tables import Implementation
from sdy.interpreter.values import TOKEN, dtype_of
from sdy.ir.shapes import shape_of
from sdy.stablehlo.chlo.scan import ScanOp


@register_impls
class Terminators(InterpreterFunctions):
    """Implementations of the terminators."""

    @impl_terminator(stablehlo.ReturnOp)
    def run_return(
        self, interpreter: Interpreter, op: stablehlo.ReturnOp, args: PythonValues
    ) -> tuple[TerminatorValue, PythonValues]:
        """Yield the operands."""
        return ReturnedValues(args), ()

    @impl_terminator(dialect.ReturnOp)
    def run_sdy_return(
        self, interpreter: Interpreter, op: dialect.ReturnOp, args: PythonValues
    ) -> tuple[TerminatorValue, PythonValues]:
        """Yield the operands."""
        return ReturnedValues(args), ()

    @impl_terminator(func.ReturnOp)
    def run_func_return(
        self, interpreter: Interpreter, op: func.ReturnOp, args: PythonValues
    ) -> tuple[TerminatorValue, PythonValues]:
        """Yield the operands."""
        return ReturnedValues(args), ()


def call(interpreter: Interpreter, op: Operation, name: str, args: PythonValues) -> PythonValues:
    """Call the function `name`.

    Raises:
        DiagnosticError: The function has no body; the error is located at `op`.
    """
    function = interpreter.get_op_for_symbol(name)
    if not isinstance(function, func.FuncOp) or not function.body.blocks:
        raise op_error(op, f"calls @{name}, which has no body to interpret")
    return interpreter.run_ssacfg_region(function.body, args, name)


def _call(interpreter: Interpreter, op: func.CallOp, args: PythonValues) -> PythonValues:
    return call(interpreter, op, op.callee.string_value(), args)


def _composite(interpreter: Interpreter, op: stablehlo.CompositeOp, args: PythonValues) -> PythonValues:
    return call(interpreter, op, op.decomposition.string_value(), args)


def _while(interpreter: Interpreter, op: stablehlo.WhileOp, args: PythonValues) -> PythonValues:
    while bool(interpreter.run_ssacfg_region(op.cond, args)[0]):
        args = interpreter.run_ssacfg_region(op.body, args)
    return args


def _if(interpreter: Interpreter, op: stablehlo.IfOp, args: PythonValues) -> PythonValues:
    return interpreter.run_ssacfg_region(op.true_branch if bool(args[0]) else op.false_branch, ())


def _case(interpreter: Interpreter, op: stablehlo.CaseOp, args: PythonValues) -> PythonValues:
    """Run the selected branch; an out-of-range index selects the last one."""
    index, count = int(args[0]), len(op.branches)
    return interpreter.run_ssacfg_region(op.branches[index if 0 <= index < count else count - 1], ())


def _same(interpreter: Interpreter, op: Operation, args: PythonValues) -> PythonValues:
    return args


def _token(interpreter: Interpreter, op: Operation, args: PythonValues) -> PythonValues:
    return (TOKEN,)


def _tuple(interpreter: Interpreter, op: stablehlo.TupleOp, args: PythonValues) -> PythonValues:
    return (args,)


def _get_tuple_element(interpreter: Interpreter, op: stablehlo.GetTupleElementOp, args: PythonValues) -> PythonValues:
    return (args[0][op.index.value.data],)


def _scan(interpreter: Interpreter, op: ScanOp, args: PythonValues) -> PythonValues:
    """Run the body for each position: it maps input elements and carried values to output elements and new values."""
    inputs, carried = args[: len(op.inputs)], args[len(op.inputs) :]
    dim, count = op.dimension.value.data, len(op.outputs)
    length = inputs[0].shape[dim] if inputs else shape_of(op.outputs[0])[dim]
    if op.scan_dim_size is not None:
        length = op.scan_dim_size.value.data
    is_reverse = bool(op.is_reverse.value.data)
    outputs = [np.empty(shape_of(value), dtype_of(value)) for value in op.outputs]
    for place in reversed(range(length)) if is_reverse else range(length):
        elements = (array.take(place, dim) for array in inputs)
        results = interpreter.run_ssacfg_region(op.body, (*elements, *carried))
        carried = results[count:]
        for output, result in zip(outputs, results[:count], strict=True):
            np.moveaxis(output, dim, 0)[place] = result
    return (*outputs, *carried)


CONTROL_FLOW: dict[type[Operation], Implementation] = {
    func.CallOp: _call,
    ScanOp: _scan,
    stablehlo.AfterAllOp: _token,
    stablehlo.CaseOp: _case,
    stablehlo.CompositeOp: _composite,
    stablehlo.CreateTokenOp: _token,
    stablehlo.GetTupleElementOp: _get_tuple_element,
    stablehlo.IfOp: _if,
    stablehlo.OptimizationBarrierOp: _same,
    stablehlo.TupleOp: _tuple,
    stablehlo.WhileOp: _while,
}
