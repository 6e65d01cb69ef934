"""The largest difference between the results of two programs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Difference:
    """The largest absolute difference of two elements, the name of its result, and the magnitude of that result."""

    largest: float
    result: str
    scale: float


def difference_text(difference: Difference | None, program: str) -> str:
    """Return `difference` as a sentence that names the reference `program`."""
    if difference is None:
        return "there is nothing to compare"
    return (
        f"largest difference from {program}: {difference.largest:.3g} "
        f"({difference.result}, whose largest element is {difference.scale:.3g})"
    )


def largest_difference(results: Sequence[Any], expected: Sequence[Any], names: Sequence[str]) -> Difference | None:
    """Return the largest difference between the arrays `results` and `expected`, or None without elements.

    Two NaNs are equal; the difference of a NaN and a number is NaN.
    """
    differences = [
        Difference(_difference(np.asarray(result), np.asarray(wanted)), name, _largest(np.asarray(wanted)))
        for result, wanted, name in zip(results, expected, names, strict=True)
        if wanted.size
    ]
    return max(differences, key=lambda difference: np.nan_to_num(difference.largest, nan=np.inf), default=None)


def _difference(result: np.ndarray[Any, np.dtype[Any]], wanted: np.ndarray[Any, np.dtype[Any]]) -> float:
    result, wanted = _wide(result), _wide(wanted)
    same = (result == wanted) | (np.isnan(result) & np.isnan(wanted))
    with np.errstate(invalid="ignore"):
        return float(np.where(same, 0, np.abs(result - wanted)).max())


def _largest(array: np.ndarray[Any, np.dtype[Any]]) -> float:
    magnitudes = np.abs(_wide(array))
    return float(magnitudes[np.isfinite(magnitudes)].max(initial=0))


def _wide(array: np.ndarray[Any, np.dtype[Any]]) -> np.ndarray[Any, np.dtype[Any]]:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.longdouble)
