"""Implementations of the `check` and `interpreter` dialects: run programs on grids, and compare tensors."""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.interpreter import Interpreter, PythonValues
from xdsl.ir import Attribute, Operation

from sdy.diagnostics import op_error
from sdy.interpreter.check_dialect import (
    DEFAULT_TOLERANCE,
    ConstantExpectationOp,
    ExpectAlmostEqConstOp,
    ExpectAlmostEqOp,
    ExpectationOp,
    ExpectCloseOp,
    ExpectEqConstOp,
    ExpectEqOp,
    ExpectSerializedEqOp,
    PrintOp,
    ProbeOp,
    RunParallelOp,
)
from sdy.interpreter.control_flow import call
from sdy.interpreter.grid import Device, DeviceId, Grid, device_of, interpreter_of
from sdy.interpreter.tables import Implementation
from sdy.interpreter.values import Array, bit_width, constant_array, widened


def _raise_if_any(op: Operation, different: Array, actual: Array, expected: Array, how: str = "") -> None:
    """Raise DiagnosticError with the first different element, if there is one."""
    if different.any():
        place = tuple(int(index) for index in np.argwhere(different)[0])
        count = int(np.count_nonzero(different))
        raise op_error(
            op,
            f"expected {expected[place]} at {list(place)}, found {actual[place]}{how}"
            f" ({count} of {different.size} elements differ)",
        )


def _expected(op: ExpectationOp, args: PythonValues) -> tuple[Array, Array]:
    if isinstance(op, ConstantExpectationOp):
        return args[0], constant_array(op.value, args[0].dtype)
    return args


def _expect_eq(interpreter: Interpreter, op: ExpectationOp, args: PythonValues) -> PythonValues:
    """Compare numerically: +0 equals -0, and NaN equals nothing."""
    actual, expected = _expected(op, args)
    _raise_if_any(op, widened(actual) != widened(expected), actual, expected)
    return ()


def _expect_almost_eq(interpreter: Interpreter, op: ExpectationOp, args: PythonValues) -> PythonValues:
    tolerance = DEFAULT_TOLERANCE if op.tolerance is None else float(op.tolerance.value.data)
    actual, expected = _expected(op, args)
    different = np.zeros(actual.shape, np.bool_)
    for x, y in zip(_parts(actual), _parts(expected), strict=True):
        same = (x == y) | (np.isnan(x) & np.isnan(y)) | (np.abs(x - y) <= tolerance)
        different |= ~same
    _raise_if_any(op, different, actual, expected, f", which is not within {tolerance:g}")
    return ()


def _parts(array: Array) -> list[Array]:
    parts = [np.real(array), np.imag(array)] if array.dtype.kind == "c" else [widened(array)]
    return [part.astype(np.float64) for part in parts]


def _expect_close(interpreter: Interpreter, op: ExpectCloseOp, args: PythonValues) -> PythonValues:
    most = int(op.max_ulp_difference.value.data)
    least = 0 if op.min_ulp_difference is None else int(op.min_ulp_difference.value.data)
    actual, expected = args
    parts = [(actual.real, expected.real), (actual.imag, expected.imag)] if actual.dtype.kind == "c" else [args]
    distance = np.max([_numbers_between(*part) for part in parts], axis=0)
    how = f", which is not {least} to {most} units in the last place away"
    _raise_if_any(op, (distance < least) | (distance > most), actual, expected, how)
    return ()


def _numbers_between(x: Array, y: Array) -> Array:
    """Return the distance of two arrays in units in the last place; infinite if one element is not finite."""
    x_place, y_place = _place(x), _place(y)
    distance = np.abs(x_place - y_place)
    finite = np.isfinite(widened(x)) & np.isfinite(widened(y))
    same = (x == y) | (np.isnan(widened(x)) & np.isnan(widened(y)))
    return np.where(finite, distance, np.where(same, 0.0, np.inf))


def _place(x: Array) -> Array:
    bits = np.ascontiguousarray(x).view(f"i{x.dtype.itemsize}").astype(object)
    return np.where(bits < 0, -(1 << (bit_width(x.dtype) - 1)) - bits, bits)


def _expect_serialized_eq(interpreter: Interpreter, op: ExpectSerializedEqOp, args: PythonValues) -> PythonValues:
    recorded = _probes(interpreter).get(op.probe_id.data, [])
    number = 0 if op.iteration is None else int(op.iteration.value.data)
    if number >= len(recorded):
        raise op_error(op, f"reads run {number} of the probe '{op.probe_id.data}', which ran {len(recorded)} times")
    if recorded[number].shape != args[0].shape:
        raise op_error(op, f"expected shape {list(args[0].shape)}, found {list(recorded[number].shape)}")
    _raise_if_any(op, widened(recorded[number]) != widened(args[0]), recorded[number], args[0])
    return ()


def _probes(interpreter: Interpreter) -> dict[str, list[Array]]:
    return device_of(interpreter).grid.probes


def _probe(interpreter: Interpreter, op: ProbeOp, args: PythonValues) -> PythonValues:
    _probes(interpreter).setdefault(op.probe_id.data, []).append(args[0])
    return args


def _print(interpreter: Interpreter, op: PrintOp, args: PythonValues) -> PythonValues:
    interpreter.print(f"{op.operand.type}\n{args[0]}")
    return ()


def _run_parallel(interpreter: Interpreter, op: RunParallelOp, args: PythonValues) -> PythonValues:
    rows = [[name.string_value() for name in row] for row in op.programs]
    if not rows or len({len(row) for row in rows}) > 1 or not rows[0]:
        raise op_error(op, "programs must have one row for each replica, all of the same length")
    grid = Grid(len(rows), len(rows[0]))
    grid.infeed = deque(partial(_infeed, op, name) for name in op.infeed or ())
    rest = list(args)
    programs: dict[DeviceId, Callable[[Device], PythonValues]] = {}
    for replica, row in enumerate(rows):
        for partition, name in enumerate(row):
            count = len(_function_inputs(interpreter, name))
            operands, rest = tuple(rest[:count]), rest[count:]
            programs[DeviceId(replica, partition)] = partial(_program, interpreter, op, name, operands)
    if rest:
        raise op_error(op, f"has {len(rest)} operands more than the programs have arguments")
    return tuple(value for values in grid.run(programs).values() for value in values)


def _function_inputs(interpreter: Interpreter, name: str) -> Sequence[Attribute]:
    function = interpreter.get_op_for_symbol(name)
    assert isinstance(function, FuncOp)
    return function.function_type.inputs.data


def _infeed(op: Operation, name: SymbolRefAttr, interpreter: Interpreter) -> PythonValues:
    return call(interpreter, op, name.string_value(), ())


def _program(outside: Interpreter, op: Operation, name: str, args: PythonValues, device: Device) -> PythonValues:
    return call(interpreter_of(device, outside), op, name, args)


CHECKS: dict[type[Operation], Implementation] = {
    ExpectAlmostEqConstOp: _expect_almost_eq,
    ExpectAlmostEqOp: _expect_almost_eq,
    ExpectCloseOp: _expect_close,
    ExpectEqConstOp: _expect_eq,
    ExpectEqOp: _expect_eq,
    ExpectSerializedEqOp: _expect_serialized_eq,
    PrintOp: _print,
    ProbeOp: _probe,
    RunParallelOp: _run_parallel,
}
