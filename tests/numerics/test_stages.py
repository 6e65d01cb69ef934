"""Reductions and scans in stages give the same integers as in one step, in the interpreter.

XLA loses the order of elements in some of them.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jax import lax

import sdy
from partitioned_programs import Argument, Axes, D, M, assert_same, constrain, lower, partitioned
from samples import covering

Pair = Sequence[jax.Array]
Body = Callable[[Pair, Pair], tuple[jax.Array, ...]]


def composed(a: Pair, b: Pair) -> tuple[jax.Array, jax.Array]:
    """Compose t -> a0 * t + a1 and then t -> b0 * t + b1."""
    return a[0] * b[0], a[1] * b[0] + b[1]


_NOTHING = (np.int32(1), np.int32(0))


def all_of_them(x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
    return lax.reduce((x % 3 - 1, y), _NOTHING, composed, (0,))


def all_up_to_each(x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
    return lax.reduce_window((x % 3 - 1, y), _NOTHING, composed, (len(x), 1), (1, 1), ((len(x) - 1, 0), (0, 0)))


def all_from_each(x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
    return lax.reduce_window((x % 3 - 1, y), _NOTHING, composed, (len(x), 1), (1, 1), ((0, len(x) - 1), (0, 0)))


@covering
@pytest.mark.parametrize("function", [all_of_them, all_up_to_each, all_from_each])
@pytest.mark.parametrize("axes", [(D,), (D, M), ((M, D),), (M, D)], ids=str)
@pytest.mark.parametrize("size", [16, 13])
def test_order_is_kept(function: Callable[[Any, Any], Any], axes: tuple[Axes, ...], size: int):
    shape = (size, 8)
    module = lower(lambda x, y: function(constrain(x, *axes), constrain(y, *axes)), *[Argument(shape, (), "int32")] * 2)
    arrays = [np.random.default_rng(seed).integers(0, 9, shape, np.int32) for seed in range(2)]
    ours, expected = (sdy.interpret(program, *arrays) for program in (partitioned(module), module))
    assert_same(ours, expected, 0)


def larger(a: Pair, b: Pair) -> tuple[jax.Array, jax.Array]:
    is_first = (a[0] > b[0]) | ((a[0] == b[0]) & (a[1] < b[1]))
    return jnp.where(is_first, a[0], b[0]), jnp.where(is_first, a[1], b[1])


BODIES: dict[str, tuple[Body, tuple[int, ...]]] = {
    "bits from a value": (lambda a, b: (a[0] ^ b[0],), (5,)),
    "product from a value": (lambda a, b: (a[0] * b[0],), (3,)),
    "sum from a value": (lambda a, b: (a[0] + b[0],), (3,)),
    "all bits": (lambda a, b: (a[0] & b[0],), (-1,)),
    "first that is not zero": (lambda a, b: (jnp.where(a[0] != 0, a[0], b[0]),), (0,)),
    "sum and largest": (lambda a, b: (a[0] + b[0], jnp.maximum(a[1], b[1])), (2, -9)),
    "place of the largest": (larger, (-99, 99)),
    "composition": (composed, (1, 0)),
}
"""Bodies, and their initial values."""

LAYOUTS: list[tuple[Axes, ...]] = [(), (D,), (None, D), (D, M), (M, D), ((D, M),), (None, None, D), (M, None, D)]


@given(data=st.data(), body=st.sampled_from(list(BODIES)))
@settings(derandomize=True, suppress_health_check=[HealthCheck.too_slow])
def test_any_reduction_gives_the_same(data: st.DataObject, body: str):
    combine, starts = BODIES[body]
    shape = data.draw(st.lists(st.sampled_from([1, 2, 3, 5, 8, 13]), min_size=2, max_size=3).map(tuple))
    layouts = [data.draw(st.sampled_from(LAYOUTS))[: len(shape)] for _ in starts]
    dims = data.draw(st.sets(st.sampled_from(range(len(shape))), min_size=1).map(sorted))
    direction = data.draw(st.sampled_from(["reduce", "from the first", "from the last"]))

    def run(*tensors: jax.Array) -> tuple[jax.Array, ...]:
        tensors = tuple(constrain(x, *axes) for x, axes in zip(tensors, layouts, strict=True))
        begin = tuple(map(np.int32, starts))
        if direction == "reduce":
            return lax.reduce(tensors, begin, combine, dims)
        window = [shape[dim] if dim == dims[0] else 1 for dim in range(len(shape))]
        padding = [(size - 1, 0) if direction == "from the first" else (0, size - 1) for size in window]
        return lax.reduce_window(tensors, begin, combine, window, (1,) * len(shape), padding)

    module = lower(run, *[Argument(shape, (), "int32")] * len(starts))
    arrays = [np.random.default_rng(seed).integers(-3, 9, shape, np.int32) for seed in range(len(starts))]
    assert_same(sdy.interpret(partitioned(module), *arrays), sdy.interpret(module, *arrays), 0)
