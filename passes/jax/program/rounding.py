"""Tolerances for comparing the results of two programs that compute the same values in a different order."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias, cast

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, Operation

from sdy.array_types import element_dtype
from sdy.diagnostics import capture
from sdy.ir.walking import operations
from sdy.passes.jax.program.inputs import NumpyArray
from sdy.rules.registry import sharding_rule

_GENEROSITY = 16
"""The default tolerance as a multiple of the expected distance of a random walk of roundings."""

_MOST = 1 / 8
"""The upper bound of the relative tolerance, which narrow types would exceed, at the default generosity."""

Again: TypeAlias = Callable[[float], Sequence[NumpyArray]]
"""Recomputes the expected results with inputs perturbed by a relative amount."""


@dataclass(frozen=True, slots=True)
class Rounding:
    """The `epsilon` of the narrowest float type of a program, the number of roundings, and the tolerance of each.

    A tolerance is `generosity` times the expected distance of a random walk.
    """

    epsilon: float
    times: int
    generosity: float = _GENEROSITY

    @classmethod
    def of(cls, module: ModuleOp, generosity: float = _GENEROSITY) -> "Rounding":
        """Count the roundings of `module`: for each operation one, or the number of terms that it adds up."""
        epsilon, times = 0.0, 0
        with capture():  # propagation has reported the operations without a rule
            for op in operations(module):
                epsilons = [_epsilon_of(result.type) for result in op.results]
                if any(epsilons):
                    epsilon = max(epsilon, *epsilons)
                    times += _terms(op)
        return cls(epsilon, times, generosity)

    @property
    def relative(self) -> float:
        """The relative tolerance of a number: that of a random walk, since roundings go either way."""
        return min(self.generosity * self.epsilon * math.sqrt(self.times), _MOST * self.generosity / _GENEROSITY)


@dataclass(frozen=True, slots=True)
class Mismatch:
    """An element of a result that differs from the `wanted` value by more than `allowed`."""

    result: int
    index: tuple[int, ...]
    value: Any
    wanted: Any
    allowed: float


def first_mismatch(
    results: Sequence[NumpyArray], expected: Sequence[NumpyArray], rounding: Rounding, again: Again
) -> Mismatch | None:
    """Return the first element of `results` that differs from `expected` by more than rounding explains, or None.

    Integers, booleans and infinities must be equal, and NaNs at the same indices. The tolerance of other numbers, for
    real and imaginary parts separately, is proportional to their magnitude plus the root mean square of their array. If
    a number exceeds it, the cause may be cancellation of larger intermediate values: the tolerance then also includes
    the change of the expected results under perturbed inputs.

    Args:
        results: The results to check.
        expected: The expected results.
        rounding: The roundings of the program.
        again: Recomputes the expected results with perturbed inputs; called at most once.
    """
    rerun: Sequence[NumpyArray] | None = None
    for number, (result, wanted) in enumerate(zip(results, expected, strict=True)):
        epsilon = _epsilon(wanted.dtype)
        allowed = np.zeros(())
        if epsilon:
            values, right = _real_parts(result), _real_parts(wanted)
            distance = _distance(values, right)
            allowed = max(rounding.relative, 2 * epsilon) * _magnitudes(right)
            if (distance > allowed).any():
                rerun = again(min(rounding.epsilon, _MOST)) if rerun is None else rerun
                moved = _distance(_real_parts(rerun[number]), right)
                allowed = allowed + rounding.generosity * (moved + _root_mean_square(moved))
            is_wrong = distance > allowed
        else:
            is_wrong = result != wanted
        for place in np.argwhere(is_wrong).tolist():
            index = tuple(place[: wanted.ndim])
            allowed = np.broadcast_to(allowed, is_wrong.shape)
            return Mismatch(number, index, result[index], wanted[index], float(allowed[tuple(place)]))
    return None


def _distance(values: NumpyArray, right: NumpyArray) -> NumpyArray:
    """Return absolute differences: 0 between equal values or two NaNs, infinite if one is NaN or infinite."""
    with np.errstate(invalid="ignore"):
        distance = np.nan_to_num(np.abs(values - right), nan=np.inf)
    return np.where((values == right) | np.isnan(values) & np.isnan(right), 0, distance)


def _magnitudes(numbers: NumpyArray) -> NumpyArray:
    """Return the magnitude of each number (0 if not finite) plus the root mean square of all."""
    return np.where(np.isfinite(numbers), np.abs(numbers), 0) + _root_mean_square(numbers)


def _root_mean_square(numbers: NumpyArray) -> float:
    """Return the root mean square of the finite numbers, without overflow."""
    finite = np.abs(numbers[np.isfinite(numbers)])
    largest = finite.max(initial=0.0)
    return float(largest * np.sqrt(np.square(finite / largest).mean())) if largest else 0.0


def _real_parts(array: NumpyArray) -> NumpyArray:
    """Convert to float64; complex arrays get a last dimension of real and imaginary part."""
    parts = np.stack([np.real(array), np.imag(array)], axis=-1) if array.dtype.kind == "c" else array
    return parts.astype(np.float64)


@cache
def _epsilon_of(type_: Attribute) -> float:
    """Return the machine epsilon of the element type; 0 if it is not a float or complex type."""
    dtype = element_dtype(cast(TensorType[Attribute], type_).element_type) if isinstance(type_, TensorType) else None
    return 0.0 if dtype is None else _epsilon(dtype)


@cache
def _epsilon(dtype: np.dtype[Any]) -> float:
    try:
        return float(cast(Any, ml_dtypes.finfo(dtype)).eps)
    except ValueError:
        return 0.0


def _terms(op: Operation) -> int:
    """Return the number of elements that each result element of `op` combines: the size of its reduction."""
    rule = sharding_rule(op)
    return 1 if rule is None else math.prod(rule.factor_sizes[f] for f in (*rule.reduction, *rule.need_replication))
