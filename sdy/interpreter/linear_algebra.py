"""Batched Cholesky factorization, triangular solve and Fourier transform."""

import numpy as np
from xdsl.interpreter import Interpreter, PythonValues

from sdy import stablehlo
from sdy.interpreter.tables import numeric
from sdy.interpreter.values import Array, of_type, sum_of_products, widened
from sdy.stablehlo import FftType, Transpose


def _transposed(a: Array) -> Array:
    return np.swapaxes(a, -1, -2)


def cholesky(a: Array, *, lower: bool) -> Array:
    """Compute the Cholesky factor of matrices, reading only the `lower` or the upper triangle.

    The factor of a matrix that is not positive definite is NaN.
    """
    if not lower:
        a = np.conj(_transposed(a))
    result = np.zeros_like(a)
    for j in range(a.shape[-1]):
        row = result[..., j, :j]
        diagonal = np.sqrt(np.real(a[..., j, j]) - np.sum(np.real(row * np.conj(row)), axis=-1))
        result[..., j, j] = diagonal
        below = a[..., j + 1 :, j] - sum_of_products("...ik,...k->...i", result[..., j + 1 :, :j], np.conj(row))
        result[..., j + 1 :, j] = below / diagonal[..., np.newaxis]
    return result if lower else np.conj(_transposed(result))


def _cholesky(interpreter: Interpreter, op: stablehlo.CholeskyOp, args: PythonValues) -> PythonValues:
    return (of_type(cholesky(widened(args[0]), lower=bool(op.lower.value.data)), op.result),)


def triangular_solve(a: Array, b: Array, *, lower: bool, left: bool, unit: bool, kind: Transpose) -> Array:
    """Solve op(a) x = b, or x op(a) = b unless `left`.

    Args:
        a: Triangular matrices; only one triangle is read.
        b: The right-hand sides.
        lower: Whether a is lower triangular.
        left: Whether op(a) is on the left of x.
        unit: Whether the diagonal of a is all ones; it is then not read.
        kind: The transposition op.
    """
    a, b = widened(a), widened(b)
    a = np.tril(a) if lower else np.triu(a)
    if kind in (Transpose.TRANSPOSE, Transpose.ADJOINT):
        a, lower = _transposed(a), not lower
    if kind is Transpose.ADJOINT:
        a = np.conj(a)
    if not left:
        # x a = b is aᵀ xᵀ = bᵀ.
        a, b, lower = _transposed(a), _transposed(b), not lower
    x = np.zeros_like(b)
    size = a.shape[-1]
    for row in range(size) if lower else reversed(range(size)):
        rest = b[..., row, :] - sum_of_products("...k,...kj->...j", a[..., row, :], x)
        x[..., row, :] = rest if unit else rest / a[..., row, row, np.newaxis]
    return x if left else _transposed(x)


def _triangular_solve(interpreter: Interpreter, op: stablehlo.TriangularSolveOp, args: PythonValues) -> PythonValues:
    lower, left, unit = (bool(flag.value.data) for flag in (op.lower, op.left_side, op.unit_diagonal))
    result = triangular_solve(args[0], args[1], lower=lower, left=left, unit=unit, kind=op.transpose_a.data)
    return (of_type(result, op.result),)


def _fft(interpreter: Interpreter, op: stablehlo.FftOp, args: PythonValues) -> PythonValues:
    lengths = op.fft_length.get_values()
    axes = range(args[0].ndim - len(lengths), args[0].ndim)
    transform = _TRANSFORMS[op.fft_type.data]
    return (of_type(transform(args[0], lengths, axes), op.result),)


_TRANSFORMS = {
    FftType.FFT: np.fft.fftn,
    FftType.IFFT: np.fft.ifftn,
    FftType.RFFT: np.fft.rfftn,
    FftType.IRFFT: np.fft.irfftn,
}

LINEAR_ALGEBRA = numeric(
    {
        stablehlo.CholeskyOp: _cholesky,
        stablehlo.FftOp: _fft,
        stablehlo.TriangularSolveOp: _triangular_solve,
    }
)
