"""Comparisons, selection, clamping and conversions."""

from typing import cast

import ml_dtypes
import numpy as np
from xdsl.interpreter import Interpreter, PythonValues
from xdsl.ir import Operation

from sdy import stablehlo
from sdy.interpreter.tables import Implementation, elementwise
from sdy.interpreter.values import Array, DType, bit_width, dtype_of, widened
from sdy.stablehlo import ComparisonDirection, ComparisonType

_RELATIONS = {
    ComparisonDirection.EQ: np.equal,
    ComparisonDirection.NE: np.not_equal,
    ComparisonDirection.GE: np.greater_equal,
    ComparisonDirection.GT: np.greater,
    ComparisonDirection.LE: np.less_equal,
    ComparisonDirection.LT: np.less,
}


def _compare(interpreter: Interpreter, op: stablehlo.CompareOp, args: PythonValues) -> PythonValues:
    total = op.compare_type is not None and op.compare_type.data is ComparisonType.TOTALORDER
    lhs, rhs = map(_place_in_total_order if total else widened, args)
    return (np.asarray(_RELATIONS[op.comparison_direction.data](lhs, rhs)),)


def _place_in_total_order(x: Array) -> Array:
    """Map floats to integers in the order -NaN < -inf < ... < -0 < +0 < ... < inf < NaN."""
    bits = x.view(f"i{x.dtype.itemsize}").astype(np.int64) << (64 - bit_width(x.dtype))
    return np.where(bits < 0, ~bits + np.iinfo(np.int64).min, bits)


def _is_float(dtype: DType) -> bool:
    return dtype.kind == "f" or (dtype.kind == "V" and "float" in dtype.name)


def _clamp(low: Array, x: Array, high: Array) -> Array:
    return np.minimum(np.maximum(x, low), high)


def _convert(interpreter: Interpreter, op: stablehlo.ConvertOp, args: PythonValues) -> PythonValues:
    """Convert elements; to an integer type, out-of-range numbers saturate and NaN becomes zero."""
    x, dtype = widened(cast(Array, args[0])), dtype_of(op.result)
    if x.dtype.kind == "c" and dtype.kind != "c":
        x = np.real(x)
    if dtype == np.bool_:
        return (x != 0,)
    if x.dtype.kind == "f" and not _is_float(dtype) and dtype.kind != "c":
        return (_to_integers(x, dtype),)
    return (x.astype(dtype),)


def _to_integers(x: Array, dtype: DType) -> Array:
    limits = ml_dtypes.iinfo(dtype)
    whole = np.nan_to_num(np.trunc(x.astype(np.float64)), nan=0.0, posinf=np.inf, neginf=-np.inf)
    low, high = int(limits.min), int(limits.max)
    inside = np.where((whole >= low) & (whole < high), whole, 0)
    native = inside.astype(np.uint64 if low == 0 else np.int64).astype(dtype)
    lowest, highest = np.array(low).astype(dtype), np.array(high).astype(dtype)
    return np.where(whole >= high, highest, np.where(whole < low, lowest, native))


COMPARISON: dict[type[Operation], Implementation] = {
    stablehlo.CompareOp: _compare,
    stablehlo.ConvertOp: _convert,
    **elementwise({stablehlo.ClampOp: _clamp}),
    **elementwise({stablehlo.SelectOp: np.where}, wide=False),
}
