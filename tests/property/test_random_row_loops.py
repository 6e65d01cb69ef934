"""Random loops over sharded rows, most of them with a mistake, compute what one device computes."""

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from partitioned_programs import Axes, D, M, Program, assert_same_as_whole, constrain, ints, partitioned
from samples import sample

T = TypeVar("T")
Carry = tuple[jax.Array, jax.Array]
Active = Callable[[jax.Array, jax.Array], jax.Array]
"""The active rows, given the count of iterations and a matrix."""

LIMIT = 60
ROWS, COLUMNS = (3, 5, 8, 9, 10, 13), (2, 3)
AXES: Sequence[tuple[Axes, ...]] = ((D,), (M,), ((D, M),), (D, M))

ACTIVE: Sequence[Active] = (
    lambda i, x: x.sum(1) < LIMIT,
    lambda i, x: x.max(1) < LIMIT,
    lambda i, x: (x[:, 0] < LIMIT) & (x[:, -1] < LIMIT),
    lambda i, x: (x[:, 0] < LIMIT) & ((i + x[:, 0]) % 3 != 0),
    lambda i, x: jnp.roll(x[:, 0] < LIMIT, 1),
    lambda i, x: x[:, 0] < x.max() // 2 + 5,
)
UPDATED: Sequence[Callable[[jax.Array, jax.Array], jax.Array]] = (
    lambda i, x: x * 2 + 1,
    lambda i, x: x + i + 1,
    lambda i, x: x + x[:, ::-1] + 1,
    lambda i, x: jnp.roll(x, 1, 0) + 1,
    lambda i, x: jnp.cumsum(x, 0) % 50 + 1,
)
SELECTED: Sequence[Callable[[jax.Array, jax.Array, jax.Array], jax.Array]] = (
    lambda active, new, old: jnp.where(active[:, None], new, old),
    lambda active, new, old: jnp.where(~active[:, None], old, new),
    lambda active, new, old: jnp.where((active & (old[:, 0] % 2 == 0))[:, None], new, old),
    lambda active, new, old: jnp.where((active | (old[:, 0] % 2 == 0))[:, None], new, old),
    lambda active, new, old: jnp.where(active[:, None], old, new),
    lambda active, new, old: new,
)
TESTED: Sequence[Callable[[jax.Array], jax.Array]] = (
    lambda active: active.any(),
    lambda active: ~(~active).all(),
    lambda active: jnp.where(jnp.arange(len(active)) < len(active) - 2, active, False).any(),
)


def loop(random: Random) -> Program:
    """Return a loop whose first choices make it one that each device may end alone."""
    active, updated, selected = _choice(ACTIVE, random), _choice(UPDATED, random), _choice(SELECTED, random)
    tested, axes = _choice(TESTED, random), _choice(AXES, random)

    def function(x: jax.Array) -> jax.Array:
        def step(carry: Carry) -> Carry:
            count, x = carry
            return count + 1, selected(active(count, x), updated(count, x), x)

        def is_unfinished(carry: Carry) -> jax.Array:
            return tested(active(*carry)) & (carry[0] < 7)

        return lax.while_loop(is_unfinished, step, (jnp.int32(0), constrain(x, *axes)))[1]

    return Program(function, (ints((random.choice(ROWS), random.choice(COLUMNS))),))


def _choice(choices: Sequence[T], random: Random) -> T:
    return choices[0] if random.random() < 0.6 else random.choice(choices)


@pytest.mark.parametrize("seed", sample(range(40), one_in=8))
def test_a_random_loop_computes_the_same_on_devices(seed: int) -> None:
    original = loop(Random(seed)).module()
    assert_same_as_whole(original, partitioned(original))
