"""Custom calls that are known to be functions of their operands."""

# numpy does not say of which type the elements of its results are.
# pyright: basic

import numpy as np
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr
from xdsl.interpreter import Interpreter, PythonValues
from xdsl.ir import Operation

from sdy import stablehlo
from sdy.diagnostics import op_error
from sdy.passes.execution.interpreter.linear_algebra import cholesky, triangular_solve
from sdy.passes.execution.interpreter.tables import Implementation
from sdy.passes.execution.interpreter.values import Array, of_type, widened
from sdy.stablehlo import Transpose


def _same(interpreter: Interpreter, op: stablehlo.CustomCallOp, args: PythonValues) -> PythonValues:
    return args


def _letter(op: stablehlo.CustomCallOp, name: str) -> str:
    """One of LAPACK's letters, which are passed by their number."""
    config = op.attributes.get("mhlo.backend_config", op.backend_config)
    value = config.data.get(name) if isinstance(config, DictionaryAttr) else None
    if not isinstance(value, IntegerAttr):
        raise op_error(op, f"has no '{name}' in its backend_config")
    return chr(value.value.data)


def _potrf(interpreter: Interpreter, op: stablehlo.CustomCallOp, args: PythonValues) -> PythonValues:
    """A Cholesky factor in one triangle of the operand, and whether that failed."""
    operand: Array = args[0]
    factor = cholesky(widened(operand), lower=_letter(op, "uplo") == "L")
    other = np.triu(operand, 1) if _letter(op, "uplo") == "L" else np.tril(operand, -1)
    failed = np.isnan(factor).any(axis=(-1, -2))
    return of_type(factor + other, op.results[0]), of_type(failed, op.results[1])


_TRANSPOSES = {"N": Transpose.NO_TRANSPOSE, "T": Transpose.TRANSPOSE, "C": Transpose.ADJOINT}


def _trsm(interpreter: Interpreter, op: stablehlo.CustomCallOp, args: PythonValues) -> PythonValues:
    result = triangular_solve(
        args[0],
        args[1],
        lower=_letter(op, "uplo") == "L",
        left=_letter(op, "side") == "L",
        unit=_letter(op, "diag") == "U",
        kind=_TRANSPOSES[_letter(op, "trans_x")],
    )
    return (of_type(result, op.results[0]),)


_KNOWN: dict[str, Implementation] = {
    "Sharding": _same,
    "annotate_device_placement": _same,
    "mhlo.sharding": _same,
    **{f"lapack_{kind}potrf_ffi": _potrf for kind in "sdcz"},
    **{f"lapack_{kind}trsm_ffi": _trsm for kind in "sdcz"},
}
"""The targets that JAX calls for linear algebra on a CPU, and those that only carry annotations."""


def _custom_call(interpreter: Interpreter, op: stablehlo.CustomCallOp, args: PythonValues) -> PythonValues:
    target = op.call_target_name.data
    known = _KNOWN.get(target)
    if known is None:
        raise op_error(op, f"calls the custom target '{target}', which cannot be interpreted")
    return known(interpreter, op, args)


CUSTOM_CALLS: dict[type[Operation], Implementation] = {stablehlo.CustomCallOp: _custom_call}
