"""Arrays that programs run with: small numbers, the extremes of a type, signed zeros, infinities, NaN."""

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np

from whole_programs.values import COMPLEX, REALS, WHOLE, Numbers, Shape

Array = np.ndarray[Any, np.dtype[Any]]

GIVEN = Numbers(largest=4.0, grain=0.25, given=True)

_DTYPES: dict[str, type[np.generic]] = {
    "i1": np.bool_,
    "i8": np.int8,
    "ui8": np.uint8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "f32": np.float32,
    "bf16": ml_dtypes.bfloat16,
    COMPLEX: np.complex64,
}
_SPECIAL = (np.nan, np.inf, -np.inf, -0.0)


def numbers_of(element: str, kind: str) -> Numbers:
    """Return the bounds on the elements of a `random_array`."""
    if element == COMPLEX:
        return GIVEN
    return replace(GIVEN, finite=kind == "small") if element in REALS else WHOLE


def dtype_of(element: str) -> np.dtype[Any]:
    """Return the NumPy dtype of an element type."""
    return np.dtype(_DTYPES[element])


def random_array(shape: Shape, element: str, kind: str, seed: tuple[int, ...]) -> Array:
    """Return an array of "small" numbers, of small ones with a tenth of "special" ones, or of "any" integers.

    Complex numbers are small: products of others depend on the order in which XLA multiplies.
    """
    generator = np.random.default_rng(seed)
    dtype = dtype_of(element)
    if element == "i1":
        return generator.integers(0, 2, shape).astype(dtype)
    if element in REALS or element == COMPLEX:
        kind = "small" if element == COMPLEX else kind
        array = _reals(generator, shape, kind)
        if element == COMPLEX:
            array = array + 1j * _reals(generator, shape, kind)
        return array.astype(dtype)
    limits = np.iinfo(dtype)
    if kind == "any":
        return generator.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    array = generator.integers(max(limits.min, -3), 10, shape).astype(dtype)
    if kind == "special":
        extremes = generator.choice(np.asarray([limits.min, limits.max], dtype), shape)
        array = np.where(generator.random(shape) < 0.1, extremes, array)
    return array


def _reals(generator: np.random.Generator, shape: Shape, kind: str) -> Array:
    array = generator.integers(-16, 17, shape) / 4
    return (
        array if kind == "small" else np.where(generator.random(shape) < 0.1, generator.choice(_SPECIAL, shape), array)
    )


def dense(array: Array, element: str) -> str:
    """Return a `dense` attribute of these elements, which are finite."""
    return f"dense<{_nested(array, element) if array.size else ''}>"


def _nested(array: Array, element: str) -> str:
    if array.ndim:
        return f"[{', '.join(_nested(part, element) for part in array)}]"
    number = array.item()
    if element == "i1":
        return str(bool(number)).lower()
    if element == COMPLEX:
        return f"({number.real:.2e}, {number.imag:.2e})"
    return f"{float(number):.2e}" if element in REALS else str(number)
