"""What rounding explains: how far results of two programs may be apart that compute the same in another order."""

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
from sdy.passes.jax.inputs import NumpyArray
from sdy.rules.registry import sharding_rule

_GENEROSITY = 16
"""So many times as far as a random walk of its roundings goes, a result may be."""

_MOST = 1 / 8
"""The most that rounding ever explains, relative to an element: of types with few bits it would explain anything."""

Again: TypeAlias = Callable[[float], Sequence[NumpyArray]]
"""What is expected, computed again from inputs that are changed by so much, relative to what they were."""


@dataclass(frozen=True, slots=True)
class Rounding:
    """Of a program, the `epsilon` of the narrowest type that it computes in, and how many times it rounds."""

    epsilon: float
    times: int

    @classmethod
    def of(cls, module: ModuleOp) -> "Rounding":
        """The roundings of `module`: one for each operation, and one for each term of its sums."""
        epsilon, times = 0.0, 0
        with capture():  # what operations have no rule was told where shardings were propagated
            for op in operations(module):
                epsilons = [_epsilon_of(result.type) for result in op.results]
                if any(epsilons):
                    epsilon = max(epsilon, *epsilons)
                    times += _terms(op)
        return cls(epsilon, times)

    @property
    def relative(self) -> float:
        """How far a number may be off, relative to numbers of its size: roundings go either way, as a random walk."""
        return min(_GENEROSITY * self.epsilon * math.sqrt(self.times), _MOST)


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The first element of a result that is not what is `wanted`, although it may differ by as much as is `allowed`."""

    result: int
    index: tuple[int, ...]
    value: Any
    wanted: Any
    allowed: float


def first_mismatch(
    results: Sequence[NumpyArray], expected: Sequence[NumpyArray], rounding: Rounding, again: Again
) -> Mismatch | None:
    """The first element of `results` that differs from those `expected` by more than rounding explains.

    Integers and booleans must be equal, infinities too, and NaNs in the same places. Other numbers, real and imaginary
    parts alike, may be off relative to their own size and the usual size of those beside them. Numbers that are still
    farther off may be what is left of larger ones that cancel each other, of which the result tells nothing: the
    roundings are then seen at work, in what changes where the program runs `again` with its inputs rounded otherwise.
    """
    rerun: Sequence[NumpyArray] | None = None
    for number, (result, wanted) in enumerate(zip(results, expected, strict=True)):
        epsilon = _epsilon(wanted.dtype)
        allowed = np.zeros(())
        if epsilon:
            values, right = _parts(result), _parts(wanted)
            distance = _distance(values, right)
            allowed = max(rounding.relative, 2 * epsilon) * _sizes(right)
            if (distance > allowed).any():
                rerun = again(min(rounding.epsilon, _MOST)) if rerun is None else rerun
                moved = _distance(_parts(rerun[number]), right)
                allowed = allowed + _GENEROSITY * (moved + _usual_size(moved))
            is_wrong = distance > allowed
        else:
            is_wrong = result != wanted
        for place in np.argwhere(is_wrong).tolist():
            index = tuple(place[: wanted.ndim])
            allowed = np.broadcast_to(allowed, is_wrong.shape)
            return Mismatch(number, index, result[index], wanted[index], float(allowed[tuple(place)]))
    return None


def _distance(values: NumpyArray, right: NumpyArray) -> NumpyArray:
    """0 between NaNs, and infinity between one and a number, and between an infinity and another number."""
    with np.errstate(invalid="ignore"):
        distance = np.nan_to_num(np.abs(values - right), nan=np.inf)
    return np.where((values == right) | np.isnan(values) & np.isnan(right), 0, distance)


def _sizes(numbers: NumpyArray) -> NumpyArray:
    """The size of each and the usual one; of what is not finite, which is equal or wrong, the latter."""
    return np.where(np.isfinite(numbers), np.abs(numbers), 0) + _usual_size(numbers)


def _usual_size(numbers: NumpyArray) -> float:
    """The root of the mean of their squares, for those that are finite."""
    finite = np.abs(numbers[np.isfinite(numbers)])
    largest = finite.max(initial=0.0)
    return float(largest * np.sqrt(np.square(finite / largest).mean())) if largest else 0.0


def _parts(array: NumpyArray) -> NumpyArray:
    """The array, or that of the real and imaginary parts of its elements, which are its last dimension, in 64 bits."""
    parts = np.stack([np.real(array), np.imag(array)], axis=-1) if array.dtype.kind == "c" else array
    return parts.astype(np.float64)


@cache
def _epsilon_of(type_: Attribute) -> float:
    """The distance from 1 to the next number of the elements of this type; 0 if they are no such numbers."""
    dtype = element_dtype(cast(TensorType[Attribute], type_).element_type) if isinstance(type_, TensorType) else None
    return 0.0 if dtype is None else _epsilon(dtype)


@cache
def _epsilon(dtype: np.dtype[Any]) -> float:
    try:
        return float(cast(Any, ml_dtypes.finfo(dtype)).eps)
    except ValueError:
        return 0.0


def _terms(op: Operation) -> int:
    """How many numbers each number that `op` makes is computed from."""
    rule = sharding_rule(op)
    return 1 if rule is None else math.prod(rule.factor_sizes[f] for f in (*rule.reduction, *rule.need_replication))
