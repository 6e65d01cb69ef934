"""Running results along a dimension whose shards exchange their totals equal those of NumPy."""

import itertools
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import sdy

FUNCTIONS = {lax.cumsum: np.add, lax.cumprod: np.multiply, lax.cummax: np.maximum, lax.cummin: np.minimum}
INPUTS = {
    "floats": np.tile(np.array([1, -0.0, -2, 0.5], np.float32), (3, 8)),
    "floats of five shards": np.arange(27, dtype=np.float32).reshape(3, 9) % 4 - 1,
    "floats without a number": np.where(np.arange(32) == 13, np.nan, np.ones((3, 1))).astype(np.float32),
    "infinite floats": np.where(np.arange(32) == 13, -np.inf, np.ones((3, 1))).astype(np.float32),
    "least integers": np.full((3, 17), np.iinfo(np.int32).min, np.int32),
    "bytes that overflow": np.tile(np.array([100, 7, -100], np.int8), (3, 7)),
}
MESH = jax.make_mesh((2, 4), ("x", "y"), (AxisType.Auto,) * 2)


def _all_results(x: jax.Array) -> list[jax.Array]:
    return [function(x, 1, reverse) for function, reverse in itertools.product(FUNCTIONS, (False, True))]


def _all_expected(x: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    forward = [function.accumulate(x, 1, x.dtype) for function in FUNCTIONS.values()]
    backward = [function.accumulate(x[:, ::-1], 1, x.dtype)[:, ::-1] for function in FUNCTIONS.values()]
    return [*itertools.chain(*zip(forward, backward, strict=True))]


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
@pytest.mark.parametrize("name", INPUTS)
def test_running_results_of_shards_equal_those_of_all_elements(name: str) -> None:
    x, columns = INPUTS[name], NamedSharding(MESH, P(None, ("y", "x")))

    def split(x: jax.Array) -> list[jax.Array]:
        results = _all_results(lax.with_sharding_constraint(x, columns))
        return [lax.with_sharding_constraint(result, columns) for result in results]

    for result, expected in zip(sdy.jit(split)(x), _all_expected(x), strict=True):
        np.testing.assert_array_equal(result, expected, strict=True)


def test_running_results_in_a_manual_computation_stay_in_its_shards() -> None:
    x = INPUTS["floats"]

    def body(x: jax.Array) -> list[jax.Array]:
        return _all_results(lax.with_sharding_constraint(x, P(None, "y")))

    manual = jax.shard_map(body, mesh=MESH, in_specs=P(None, "x"), out_specs=P(None, "x"), axis_names={"x"})
    halves = zip(*map(_all_expected, np.split(x, 2, axis=1)), strict=True)
    for result, expected in zip(sdy.jit(manual)(x), halves, strict=True):
        np.testing.assert_array_equal(result, np.concatenate(expected, 1))
