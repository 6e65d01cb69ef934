"""The reference interpreter: what it computes, alone and on the devices of a mesh, and what it says of mistakes."""

# jax does not declare all of its types.
# pyright: basic

from typing import Any

import jax
import numpy as np
import pytest
import test_partitioning

import sdy
from jax_programs import PROGRAMS
from sdy.diagnostics import DiagnosticError, capture
from sdy.passes.driver import partition, propagate

NOT_INTERPRETED = {
    "callback": "xla_ffi_python_cpu_callback",
    "custom calls": "lapack",
    "linear algebra": "lapack",
    "linear algebra on a TPU": "lapack",
    "top k": "chlo.top_k",
    "uniform": "stablehlo.rng",
    "random bits": "stablehlo.rng_bit_generator",
}
"""Programs with an operation that is refused, and what is said of it."""

ON_SEVERAL_DEVICES = {
    "psum",
    "pmax",
    "all gather",
    "reduce scatter",
    "all to all",
    "permute",
    "asynchronous gather",
    "axis index",
    "broadcast from one device",
    "send and receive",
    "tokens",
}
NOT_ASSOCIATIVE = {"reduction with a body"}
"""Programs whose result depends on the order in which elements are combined, which StableHLO leaves open."""

STATIC = [
    name
    for name, program in PROGRAMS.items()
    if all(isinstance(size, int) for argument in program.arguments for size in argument.shape)
    and name not in {*NOT_INTERPRETED, *ON_SEVERAL_DEVICES, *NOT_ASSOCIATIVE}
]


def some_array(shape: Any, random: np.random.Generator) -> np.ndarray[Any, Any]:
    dtype = np.dtype(shape.dtype)
    if dtype.kind == "b":
        return random.integers(0, 2, shape.shape).astype(dtype)
    if dtype.kind in "iu":
        return random.integers(1, 8, shape.shape).astype(dtype)
    real = random.uniform(0.1, 0.9, shape.shape)
    return (real + 1j * random.uniform(0.1, 0.9, shape.shape) if dtype.kind == "c" else real).astype(dtype)


def assert_close(result: Any, wanted: Any, tolerance: float = 1e-5) -> None:
    wanted = np.asarray(wanted)
    assert (result.shape, result.dtype) == (wanted.shape, wanted.dtype)
    if result.dtype.kind in "biu":
        np.testing.assert_array_equal(result, wanted)
    else:
        wide = np.complex128 if result.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(result.astype(wide), wanted.astype(wide), tolerance, tolerance)


def module_of(name: str) -> Any:
    traced = jax.jit(PROGRAMS[name].function, keep_unused=True).trace(*PROGRAMS[name].arguments)
    return sdy.parse(str(traced.lower().compiler_ir("stablehlo")))


@pytest.mark.parametrize("name", STATIC)
def test_program_computes_what_jax_does(name: str):
    random = np.random.default_rng(0)
    arguments = [some_array(shape, random) for shape in PROGRAMS[name].arguments]
    results = sdy.interpret(module_of(name), *arguments)
    wanted = jax.tree.leaves(jax.jit(PROGRAMS[name].function)(*arguments))
    for result, value in zip(results, wanted, strict=True):
        assert_close(result, value)


@pytest.mark.parametrize("name", NOT_INTERPRETED)
def test_what_is_not_interpreted_is_named(name: str):
    random = np.random.default_rng(0)
    arguments = [some_array(shape, random) for shape in PROGRAMS[name].arguments]
    with pytest.raises(DiagnosticError, match=NOT_INTERPRETED[name]):
        sdy.interpret(module_of(name), *arguments)


NOT_INTERPRETED_HERE = {"cholesky", "random bits", "top-k", "triangular solve"}


@pytest.mark.parametrize("name", sorted(test_partitioning.PROGRAMS.keys() - NOT_INTERPRETED_HERE))
def test_devices_together_compute_what_one_does(name: str):
    original = test_partitioning.lower(*test_partitioning.PROGRAMS[name])
    module = original.clone()
    with capture():
        propagate(module)
        partition(module)
    random = np.random.default_rng(0)
    arguments = [some_array(argument, random) for argument in test_partitioning.PROGRAMS[name][1:]]
    for result, wanted in zip(sdy.interpret(module, *arguments), sdy.interpret(original, *arguments), strict=True):
        assert_close(result, wanted, test_partitioning.TOLERANCES.get(name, 1e-5))
