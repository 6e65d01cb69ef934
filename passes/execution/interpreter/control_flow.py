"""Loops, branches, calls, tuples and tokens."""

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

from sdy import stablehlo
from sdy.diagnostics import op_error
from sdy.passes.execution.interpreter.tables import Implementation
from sdy.passes.execution.interpreter.values import TOKEN


@register_impls
class Terminators(InterpreterFunctions):
    """What ends a region."""

    @impl_terminator(stablehlo.ReturnOp)
    def run_return(
        self, interpreter: Interpreter, op: stablehlo.ReturnOp, args: PythonValues
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
    """The results of the function called `name`. Raises DiagnosticError at `op` where it has no body."""
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
    """An index without a branch takes the last one."""
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


def _custom_call(interpreter: Interpreter, op: stablehlo.CustomCallOp, args: PythonValues) -> PythonValues:
    target = op.call_target_name.data
    known = _CUSTOM_CALLS.get(target)
    if known is None:
        raise op_error(op, f"calls the custom target '{target}', which cannot be interpreted")
    return known(interpreter, op, args)


_CUSTOM_CALLS: dict[str, Implementation] = {
    "Sharding": _same,
    "SPMDFullToShardShape": _same,
    "SPMDShardToFullShape": _same,
    "annotate_device_placement": _same,
    "mhlo.sharding": _same,
}

CONTROL_FLOW: dict[type[Operation], Implementation] = {
    func.CallOp: _call,
    stablehlo.AfterAllOp: _token,
    stablehlo.CaseOp: _case,
    stablehlo.CompositeOp: _composite,
    stablehlo.CreateTokenOp: _token,
    stablehlo.CustomCallOp: _custom_call,
    stablehlo.GetTupleElementOp: _get_tuple_element,
    stablehlo.IfOp: _if,
    stablehlo.OptimizationBarrierOp: _same,
    stablehlo.TupleOp: _tuple,
    stablehlo.WhileOp: _while,
}
