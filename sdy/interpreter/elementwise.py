"""Elementwise functions."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from xdsl.ir import Operation

from sdy import stablehlo
from sdy.interpreter.tables import Implementation, Kernel, elementwise
from sdy.interpreter.values import Array
from sdy.stablehlo.chlo import elementwise as chlo


def _is_complex(x: Array) -> bool:
    return x.dtype.kind == "c"


def _is_integer(x: Array) -> bool:
    return x.dtype.kind in "iu"


def _atan2(y: Array, x: Array) -> Array:
    if not _is_complex(y):
        return np.arctan2(y, x)
    return -1j * np.log((x + 1j * y) / np.sqrt(x * x + y * y))


def _cbrt(x: Array) -> Array:
    return np.power(x, 1 / 3) if _is_complex(x) else np.cbrt(x)


def _divide(x: Array, y: Array) -> Array:
    """Divide; integers round toward zero, and division by zero yields -1 (all bits set for unsigned types)."""
    if not _is_integer(x):
        return np.divide(x, y)
    quotient = np.floor_divide(x, y)
    quotient = quotient + ((np.fmod(x, y) != 0) & ((x < 0) != (y < 0))).astype(x.dtype)
    return np.where(y == 0, np.array(-1).astype(x.dtype), quotient)


def _remainder(x: Array, y: Array) -> Array:
    return np.where(y == 0, x, np.fmod(x, y)) if _is_integer(x) else np.fmod(x, y)


def _logistic(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _power(x: Array, y: Array) -> Array:
    if x.dtype.kind != "i":
        return np.power(x, y)
    negative = np.where(np.abs(x) == 1, np.power(x, np.abs(y)), 0)
    return np.where(y < 0, negative, np.power(x, np.maximum(y, 0)))


def _round_away(x: Array) -> Array:
    whole = np.trunc(x)
    return whole + np.copysign(np.abs(x - whole) >= 0.5, x).astype(x.dtype)


def _sign(x: Array) -> Array:
    return np.where(x == 0, x, np.sign(x))


def _imag(x: Array) -> Array:
    return np.imag(x) if _is_complex(x) else np.zeros_like(x)


def _complex(real: Array, imaginary: Array) -> Array:
    result = np.empty(np.broadcast_shapes(real.shape, imaginary.shape), np.result_type(real.dtype, np.complex64))
    result.real, result.imag = real, imaginary
    return result


def _same(x: Array) -> Array:
    return x


def _special(name: str) -> Callable[..., Any]:
    """Return a function of `scipy.special`, which is imported when it is called: passes fold integers without it."""

    def call(*args: Array) -> Any:
        return getattr(import_module("scipy.special"), name)(*args)

    return call


def _polygamma(n: Array, x: Array) -> Array:
    order = np.where((n >= 0) & (n == np.floor(n)), n, 0).astype(np.int64)
    value: Any = _special("polygamma")(order, x)
    return np.where((n >= 0) & (n == np.floor(n)), value, np.nan)


_KERNELS: dict[type[Operation], Kernel] = {
    stablehlo.AbsOp: np.abs,
    stablehlo.AddOp: np.add,
    stablehlo.AndOp: np.bitwise_and,
    stablehlo.Atan2Op: _atan2,
    stablehlo.CbrtOp: _cbrt,
    stablehlo.CeilOp: np.ceil,
    stablehlo.ComplexOp: _complex,
    stablehlo.CosineOp: np.cos,
    stablehlo.DivOp: _divide,
    stablehlo.ExpOp: np.exp,
    stablehlo.Expm1Op: np.expm1,
    stablehlo.FloorOp: np.floor,
    stablehlo.ImagOp: _imag,
    stablehlo.IsFiniteOp: np.isfinite,
    stablehlo.LogOp: np.log,
    stablehlo.Log1pOp: np.log1p,
    stablehlo.LogisticOp: _logistic,
    stablehlo.MaxOp: np.maximum,
    stablehlo.MinOp: np.minimum,
    stablehlo.MulOp: np.multiply,
    stablehlo.NegOp: np.negative,
    stablehlo.NotOp: np.invert,
    stablehlo.OrOp: np.bitwise_or,
    stablehlo.PowOp: _power,
    stablehlo.RealOp: np.real,
    stablehlo.RemOp: _remainder,
    stablehlo.RoundNearestEvenOp: np.rint,
    stablehlo.RoundOp: _round_away,
    stablehlo.RsqrtOp: lambda x: 1 / np.sqrt(x),
    stablehlo.SignOp: _sign,
    stablehlo.SineOp: np.sin,
    stablehlo.SqrtOp: np.sqrt,
    stablehlo.SubtractOp: np.subtract,
    stablehlo.TanOp: np.tan,
    stablehlo.TanhOp: np.tanh,
    stablehlo.UniformDequantizeOp: _same,
    stablehlo.UniformQuantizeOp: _same,
    stablehlo.XorOp: np.bitwise_xor,
    chlo.AcosOp: np.arccos,
    chlo.AcoshOp: np.arccosh,
    chlo.AsinOp: np.arcsin,
    chlo.AsinhOp: np.arcsinh,
    chlo.AtanOp: np.arctan,
    chlo.AtanhOp: np.arctanh,
    chlo.BesselI1eOp: _special("i1e"),
    chlo.ConjOp: np.conj,
    chlo.CoshOp: np.cosh,
    chlo.DigammaOp: _special("digamma"),
    chlo.ErfOp: _special("erf"),
    chlo.ErfInvOp: _special("erfinv"),
    chlo.ErfcOp: _special("erfc"),
    chlo.IsInfOp: np.isinf,
    chlo.IsNegInfOp: np.isneginf,
    chlo.IsPosInfOp: np.isposinf,
    chlo.LgammaOp: _special("gammaln"),
    chlo.PolygammaOp: _polygamma,
    chlo.SinhOp: np.sinh,
    chlo.SquareOp: np.square,
    chlo.TanOp: np.tan,
    chlo.ZetaOp: _special("zeta"),
}

ELEMENTWISE: dict[type[Operation], Implementation] = {
    **elementwise(_KERNELS),
    **elementwise({chlo.NextAfterOp: np.nextafter}, wide=False),
}
