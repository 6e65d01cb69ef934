"""Reductions and accumulations of which XLA loses the order of elements, partitioned: they keep it."""

# jax does not declare all of its types.
# pyright: basic

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax

import sdy
from partitioned_programs import Argument, Axes, D, M, assert_same, constrain, lower, partitioned

Pair = Sequence[jax.Array]


def composed(a: Pair, b: Pair) -> tuple[jax.Array, jax.Array]:
    """t -> a0 * t + a1 and then t -> b0 * t + b1."""
    return a[0] * b[0], a[1] * b[0] + b[1]


_NOTHING = (np.int32(1), np.int32(0))


def all_of_them(x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
    return lax.reduce((x % 3 - 1, y), _NOTHING, composed, (0,))


def all_up_to_each(x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
    return lax.reduce_window((x % 3 - 1, y), _NOTHING, composed, (len(x), 1), (1, 1), ((len(x) - 1, 0), (0, 0)))


def all_from_each(x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
    return lax.reduce_window((x % 3 - 1, y), _NOTHING, composed, (len(x), 1), (1, 1), ((0, len(x) - 1), (0, 0)))


@pytest.mark.parametrize("function", [all_of_them, all_up_to_each, all_from_each])
@pytest.mark.parametrize("axes", [(D,), (D, M), ((M, D),), (M, D)], ids=str)
@pytest.mark.parametrize("size", [16, 13])
def test_order_is_kept(function: Callable[..., Any], axes: tuple[Axes, ...], size: int):
    shape = (size, 8)
    module = lower(
        lambda *tensors: function(*(constrain(x, *axes) for x in tensors)), *[Argument(shape, (), "int32")] * 2
    )
    arrays = [np.random.default_rng(seed).integers(0, 9, shape, np.int32) for seed in range(2)]
    ours, expected = (sdy.interpret(program, *arrays) for program in (partitioned(module), module))
    assert_same(ours, expected, 0)
