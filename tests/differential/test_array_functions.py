"""Functions of arrays under `sdy.jit`: numbers as on one device, and no more bytes received than under `jax.jit`."""

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import sdy
from array_functions import FUNCTIONS, of_edge_cases
from array_functions.array_function import Shape
from samples import sample
from sdy.passes.jax.hlo_received import bytes_received

LINE, GRID = (
    jax.make_mesh(sizes, names, axis_types=(AxisType.Auto,) * len(names))
    for sizes, names in (((8,), ("x",)), ((4, 2), ("x", "y")))
)


def rows(shape: Shape) -> P:
    return P("x") if shape[0] % 8 == 0 else columns(shape)


def columns(shape: Shape) -> P:
    return P(None, "x") if len(shape) > 1 and shape[1] % 8 == 0 else P("x") if shape[0] % 8 == 0 else P()


def tiles(shape: Shape) -> P:
    if shape[0] % 4:
        return P(None, "x") if len(shape) > 1 and shape[1] % 4 == 0 else P()
    return P("x", "y") if len(shape) > 1 and shape[1] % 2 == 0 else P("x")


LAYOUTS: Mapping[str, tuple[Mesh, Any]] = {"rows": (LINE, rows), "columns": (LINE, columns), "tiles": (GRID, tiles)}

_SOLUTION = "the columns of a solution stay split, where XLA replicates it and its uses"
_UNSPLIT = "XLA simplifies the gather before propagation, so that the gradient of a column is split"
_REDUCER = "XLA simplifies the reducer to an addition"
_CONSTANTS = "XLA computes the constant indices"
DEARER: Mapping[str, str] = {
    "expm": _SOLUTION,
    "solve": _SOLUTION,
    "cho_solve": _SOLUTION,
    "chol solve": _SOLUTION,
    "tri unit diag": _SOLUTION,
    "at col add": _UNSPLIT,
    "reduce sub": _REDUCER,
    "ds clamp": _CONSTANTS,
    "dus clamp": _CONSTANTS,
    "polydiv roots": "an index is summed over devices, some bytes in all",
}
"""Functions that receive more bytes than under `jax.jit`, with the reasons."""

UNSPECIFIED = ("rw init 1", "reduce init 1")
"""Functions whose values StableHLO leaves to the implementation: XLA drops the initial value of a rewritten sum."""

COARSE = {"bf16 mm": 2e-2}
"""The tolerances, relative to the largest element, of functions that sum in other types than `float32`."""

UNBATCHED = ("bcoo given", "ragged")
"""Functions that `jax.vmap` refuses to batch over the last dimension."""

CASES = [
    (name, layout, form)
    for name, of in FUNCTIONS.items()
    for layout in LAYOUTS
    for form in ("function", "gradient", "vmap")
    if (of.is_differentiable or form != "gradient")
    and ((layout == "tiles" and name not in UNBATCHED) or form != "vmap")
]


@pytest.mark.parametrize(("name", "layout", "form"), sample(CASES, one_in=199))
def test_numbers_and_bytes(name: str, layout: str, form: str) -> None:
    of, (mesh, spec_of) = FUNCTIONS[name], LAYOUTS[layout]
    of = of.batched() if form == "vmap" else of
    function = of.gradient() if form == "gradient" else of.function
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape).astype(np.float32) for shape in of.shapes]
    arguments = [
        jax.device_put(array, NamedSharding(mesh, spec_of(shape)))
        for array, shape in zip(arrays, of.shapes, strict=True)
    ]
    with jax.set_mesh(mesh):
        compiled = sdy.jit(function).lower(*arguments).compile()
        results = compiled(*arguments)
    if name not in UNSPECIFIED:
        expected = jax.jit(function)(*map(jnp.asarray, arrays))
        jax.tree.map(partial(assert_close, tolerance=COARSE.get(name, 2e-4)), results, expected)
    # XLA ends the process for some of the others, and refuses the layout of some transforms.
    if name not in DEARER and name not in of_edge_cases.FUNCTIONS:
        with jax.set_mesh(mesh), suppress(jax.errors.JaxRuntimeError):
            theirs = jax.jit(function).lower(*arguments).compile()
            received, allowed = (bytes_received(each.as_text(), mesh.size) for each in (compiled, theirs))
            assert received <= 1.02 * allowed + 16


def assert_close(result: jax.Array, expected: jax.Array, tolerance: float) -> None:
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    scale = np.nanmax(np.abs(expected), initial=1e-3, where=np.isfinite(expected)) if expected.size else 1
    np.testing.assert_allclose(result, expected, rtol=1e-3, atol=tolerance * float(scale))
