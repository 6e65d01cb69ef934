"""Measurement of a case: bytes received under both compilers, and equality of the results."""

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import sdy
from dearer.case import Array, Case
from sdy.passes.jax.hlo_received import bytes_received

MOST = 1.05
"""Largest accepted ratio of bytes received, `sdy.jit` over `jax.jit`."""

NEGLIGIBLE_BYTES = 64
"""Bytes received up to this number are not compared."""


@dataclass(frozen=True)
class Measured:
    """Bytes received per device, and the problem: "dearer", "wrong", "refused", or ""."""

    ours: float
    theirs: float
    problem: str = ""
    why: str = ""

    @property
    def ratio(self) -> float:
        """Ratio of our bytes received to those of `jax.jit`, 1 if both are negligible or `jax.jit` refuses it."""
        if max(self.ours, self.theirs) <= NEGLIGIBLE_BYTES or self.theirs == math.inf:
            return 1.0
        return max(self.ours, 1.0) / max(self.theirs, 1.0)


def measure(case: Case, with_jax: bool = True) -> Measured:
    """Compile and run `case` with `sdy.jit`, and compile it with `jax.jit` if `with_jax`."""
    try:
        theirs = _compile(case, jax.jit)[1] if with_jax else math.inf
    except Exception:
        theirs = math.inf  # XLA's partitioner refuses some uneven programs
    try:
        compiled, ours = _compile(case, sdy.jit)
        results = [np.asarray(each) for each in compiled(*_placed(case))]
    except Exception as problem:
        return Measured(0, theirs, "refused", f"{type(problem).__name__}: {problem}")
    for result, expected in zip(results, jax.jit(case.whole)(*case.operands), strict=True):
        if not _close(result, np.asarray(expected)):
            return Measured(ours, theirs, "wrong", f"{result.tolist()} instead of {np.asarray(expected).tolist()}")
    measured = Measured(ours, theirs)
    is_dearer = ours > NEGLIGIBLE_BYTES and ours > MOST * theirs
    return replace(measured, problem="dearer", why=f"{ours:.0f} bytes beside {theirs:.0f}") if is_dearer else measured


def _compile(case: Case, jit: Callable[..., Any]) -> tuple[Any, float]:
    """Return the compiled program and the bytes that a device receives when it runs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jitted = jit(case.function, in_shardings=tuple(case.in_shardings), out_shardings=list(case.out_shardings))
        compiled = jitted.lower(*case.operands).compile()
    return compiled, bytes_received(compiled.as_text(), case.num_devices)


def _placed(case: Case) -> Iterator[jax.Array]:
    return (jax.device_put(x, sharding) for x, sharding in zip(case.operands, case.in_shardings, strict=True))


def _close(result: Array, expected: Array) -> bool:
    """Return whether the numbers are equal up to the rounding of sums."""
    if result.shape != expected.shape or result.dtype != expected.dtype:
        return False
    if result.dtype.kind in "iub":
        return np.array_equal(result, expected)
    tolerance = 64 * float(jnp.finfo(result.dtype).eps)
    largest = float(np.abs(expected[np.isfinite(expected)]).max(initial=1.0))
    return np.allclose(result, expected, tolerance, tolerance * largest, equal_nan=True)
