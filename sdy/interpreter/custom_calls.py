"""Custom calls with known semantics: batched LAPACK routines, which JAX calls on CPUs, and identities.

The values that a routine leaves in its operand besides its result, for example in the other triangle of a factor, are
part of the result here too. Most routines return `info`, which is 0 on success.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from xdsl.interpreter import Interpreter, PythonValues
from xdsl.ir import Operation

from sdy import stablehlo
from sdy.diagnostics import op_error
from sdy.interpreter.linear_algebra import cholesky, triangular_solve
from sdy.interpreter.tables import Implementation
from sdy.interpreter.values import Array, dtype_of, of_type, widened
from sdy.ir.shapes import shape_of
from sdy.stablehlo import Transpose
from sdy.stablehlo.custom_call import TRIANGULAR_SOLVES, is_on_left, letter
from sdy.type_helpers import Function


def _lapack(name: str) -> Callable[..., Any]:
    """Return a routine of LAPACK; SciPy is imported when one is called."""
    return getattr(import_module("scipy.linalg").lapack, name)


def _potrf(interpreter: Interpreter, op: stablehlo.CustomCallOp, args: PythonValues) -> PythonValues:
    """Compute a Cholesky factor in one triangle of the operand, and a failure flag."""
    operand: Array = args[0]
    factor = cholesky(widened(operand), lower=letter(op, "uplo") == "L")
    other = np.triu(operand, 1) if letter(op, "uplo") == "L" else np.tril(operand, -1)
    failed = np.isnan(factor).any(axis=(-1, -2))
    return of_type(factor + other, op.results[0]), of_type(failed, op.results[1])


_TRANSPOSES = {"N": Transpose.NO_TRANSPOSE, "T": Transpose.TRANSPOSE, "C": Transpose.ADJOINT}


def _trsm(interpreter: Interpreter, op: stablehlo.CustomCallOp, args: PythonValues) -> PythonValues:
    result = triangular_solve(
        args[0],
        args[1],
        lower=letter(op, "uplo") == "L",
        left=is_on_left(op),
        unit=letter(op, "diag") == "U",
        kind=_TRANSPOSES[letter(op, "trans_x")],
    )
    return (of_type(result, op.results[0]),)


Routine = Function[tuple[Any, ...]]
"""A function of the call and the operands of one matrix, which returns its results."""


def _for_each_matrix(routine: Routine) -> Implementation:
    """Batch a routine over all but the last two dimensions of the first operand."""

    def run(interpreter: Interpreter, op: stablehlo.CustomCallOp, args: PythonValues) -> PythonValues:
        batch = args[0].shape[:-2]
        results = [np.zeros(shape_of(result), dtype_of(result)) for result in op.results]
        for index in np.ndindex(*batch):
            for result, value in zip(results, routine(op, *(arg[index] for arg in args)), strict=True):
                result[index] = value
        return tuple(results)

    return run


def _getrf(kind: str) -> Routine:
    """LU decomposition: both triangular factors in one matrix, and the pivot row of each row, counted from 1."""

    def run(op: stablehlo.CustomCallOp, matrix: Array) -> tuple[Any, ...]:
        factors, pivots, info = _lapack(f"{kind}getrf")(matrix)
        return factors, pivots + 1, info

    return run


def _geqrf(kind: str) -> Routine:
    """QR decomposition: R in the upper triangle, the Householder reflectors of Q below it and in a vector."""
    return lambda op, matrix: _lapack(f"{kind}geqrf")(matrix)[:2]


def _orgqr(kind: str) -> Routine:
    """The matrix Q of the Householder reflectors that geqrf returns."""
    name = f"{kind}{'orgqr' if kind in 'sd' else 'ungqr'}"
    return lambda op, matrix, reflections: _lapack(name)(matrix, reflections)[:1]


def _syevd(kind: str) -> Routine:
    """Eigendecomposition of a symmetric or Hermitian matrix: eigenvectors, if requested, and eigenvalues."""
    name = f"{kind}{'syevd' if kind in 'sd' else 'heevd'}"

    def run(op: stablehlo.CustomCallOp, matrix: Array) -> tuple[Any, ...]:
        values, vectors, info = _lapack(name)(
            matrix, compute_v=letter(op, "mode") == "V", lower=letter(op, "uplo") == "L"
        )
        return vectors, values, info

    return run


def _gesdd(kind: str) -> Routine:
    """Singular value decomposition: the overwritten operand, singular values and, if requested, singular vectors."""

    def run(op: stablehlo.CustomCallOp, matrix: Array) -> tuple[Any, ...]:
        mode = letter(op, "mode")
        left, values, right, info = _lapack(f"{kind}gesdd")(matrix, compute_uv=mode != "N", full_matrices=mode == "A")
        return (matrix, values, *((0, 0) if mode == "N" else (left, right)), info)

    return run


_ROUTINES = {
    "getrf": _getrf,
    "geqrf": _geqrf,
    "orgqr": _orgqr,
    "ungqr": _orgqr,
    "syevd": _syevd,
    "heevd": _syevd,
    "gesdd": _gesdd,
}

LAPACK: dict[str, Implementation] = {
    **{f"lapack_{kind}potrf_ffi": _potrf for kind in "sdcz"},
    **dict.fromkeys(TRIANGULAR_SOLVES, _trsm),
    **{
        f"lapack_{kind}{name}_ffi": _for_each_matrix(routine(kind))
        for name, routine in _ROUTINES.items()
        for kind in "sdcz"
    },
}
"""The routines by JAX's custom-call target; the letter after `lapack_` is that of the element type."""


def _same(interpreter: Interpreter, op: stablehlo.CustomCallOp, args: PythonValues) -> PythonValues:
    return args


_KNOWN: dict[str, Implementation] = {
    "Sharding": _same,
    "annotate_device_placement": _same,
    "mhlo.sharding": _same,
    **LAPACK,
}


def _custom_call(interpreter: Interpreter, op: stablehlo.CustomCallOp, args: PythonValues) -> PythonValues:
    target = op.call_target_name.data
    known = _KNOWN.get(target)
    if known is None:
        raise op_error(op, f"calls the custom target '{target}', which cannot be interpreted")
    return known(interpreter, op, args)


CUSTOM_CALLS: dict[type[Operation], Implementation] = {stablehlo.CustomCallOp: _custom_call}
