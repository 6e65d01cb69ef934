"""LAPACK's routines, which JAX calls for linear algebra on a CPU, on the last two dimensions of batches.

What a routine leaves in its operand beside its result (a factor's other triangle, what it needs to make Q) is a result
here as well. `info`, a result of most, is 0 where the routine succeeded.
"""

from typing import Any

import numpy as np
from scipy.linalg import lapack
from xdsl.interpreter import Interpreter, PythonValues

from sdy import stablehlo
from sdy.callables import Function
from sdy.interpreter.linear_algebra import cholesky, triangular_solve
from sdy.interpreter.tables import Implementation
from sdy.interpreter.values import Array, dtype_of, of_type, widened
from sdy.ir.shapes import shape_of
from sdy.stablehlo import Transpose
from sdy.stablehlo.lapack import TRIANGULAR_SOLVES, is_on_left, letter


def _potrf(interpreter: Interpreter, op: stablehlo.CustomCallOp, args: PythonValues) -> PythonValues:
    """A Cholesky factor in one triangle of the operand, and whether that failed."""
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
"""A function of the call and the operands for one matrix, to the results for it."""


def _for_each_matrix(routine: Routine) -> Implementation:
    """Of the operands all but two dimensions of the first are those of the batch."""

    def run(interpreter: Interpreter, op: stablehlo.CustomCallOp, args: PythonValues) -> PythonValues:
        batch = args[0].shape[:-2]
        results = [np.zeros(shape_of(result), dtype_of(result)) for result in op.results]
        for index in np.ndindex(*batch):
            for result, value in zip(results, routine(op, *(arg[index] for arg in args)), strict=True):
                result[index] = value
        return tuple(results)

    return run


def _getrf(kind: str) -> Routine:
    """Both triangular factors in one matrix, and the row that each row was exchanged with, counted from 1."""

    def run(op: stablehlo.CustomCallOp, matrix: Array) -> tuple[Any, ...]:
        factors, pivots, info = getattr(lapack, f"{kind}getrf")(matrix)
        return factors, pivots + 1, info

    return run


def _geqrf(kind: str) -> Routine:
    """R in the upper triangle, and the reflections that make Q below it and in a vector."""
    return lambda op, matrix: getattr(lapack, f"{kind}geqrf")(matrix)[:2]


def _orgqr(kind: str) -> Routine:
    """Q of what geqrf has left."""
    name = f"{kind}{'orgqr' if kind in 'sd' else 'ungqr'}"
    return lambda op, matrix, reflections: getattr(lapack, name)(matrix, reflections)[:1]


def _syevd(kind: str) -> Routine:
    """Eigenvectors, if they are wanted, and eigenvalues of a symmetric or Hermitian matrix."""
    name = f"{kind}{'syevd' if kind in 'sd' else 'heevd'}"

    def run(op: stablehlo.CustomCallOp, matrix: Array) -> tuple[Any, ...]:
        values, vectors, info = getattr(lapack, name)(
            matrix, compute_v=letter(op, "mode") == "V", lower=letter(op, "uplo") == "L"
        )
        return vectors, values, info

    return run


def _gesdd(kind: str) -> Routine:
    """The operand, which LAPACK overwrites, singular values and, if they are wanted, left and right vectors."""

    def run(op: stablehlo.CustomCallOp, matrix: Array) -> tuple[Any, ...]:
        mode = letter(op, "mode")
        left, values, right, info = getattr(lapack, f"{kind}gesdd")(
            matrix, compute_uv=mode != "N", full_matrices=mode == "A"
        )
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
"""The routines by the targets of JAX's custom calls; the letter after `lapack_` is that of the element type."""
