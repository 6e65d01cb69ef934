"""Sorts, ranks and prefix sums: computations that depend on the order along a dimension."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from partitioned_programs import CUBE, LINE, Argument, D, M, Program, X, Y, Z, ints, program


def unique_counts(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    return jnp.unique(x, return_counts=True, size=8, fill_value=-1)


def run_lengths(x: jax.Array) -> jax.Array:
    """Count, for each element, the elements since the last multiple of three."""
    joined = lax.associative_scan(
        lambda a, b: (jnp.where(b[1], b[0], a[0] + b[0]), a[1] | b[1]), (x * 0 + 1, x % 3 == 0)
    )
    return joined[0]


def first_largest(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the index of the first maximum; a NaN counts as the maximum."""
    return jnp.argmax(jnp.round(x), 1), jnp.argmin(jnp.where(x > 1, jnp.nan, x), 0)


def recurrence(decay: jax.Array, x: jax.Array) -> jax.Array:
    """Compute a linear recurrence in logarithmic depth, as state-space models do."""
    return lax.associative_scan(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (jax.nn.sigmoid(decay), x), axis=1)[1]


def record_holders(x: jax.Array) -> jax.Array:
    """Return the index of each prefix's maximum along rows, the first one of equal elements."""

    def larger(a: Sequence[jax.Array], b: Sequence[jax.Array]) -> tuple[jax.Array, ...]:
        is_first = (a[0] > b[0]) | ((a[0] == b[0]) & (a[1] < b[1]))
        return jnp.where(is_first, a[0], b[0]), jnp.where(is_first, a[1], b[1])

    pairs, starts = (x, lax.broadcasted_iota("int32", x.shape, 1)), (np.int32(-99), np.int32(99))
    return lax.reduce_window(pairs, starts, larger, (1, 32), (1, 1), ((0, 0), (31, 0)))[1]


_SPLIT, _INTEGERS = Argument((16, 32), (D, M)), ints((16, 32), D, M)

PROGRAMS: dict[str, Program] = {
    "sort": program(lambda x: jnp.sort(x, 0), _SPLIT),
    "sort of integers": program(lambda x: (jnp.sort(x, 1), jnp.argsort(x, 1, stable=True)), _INTEGERS),
    "sort by two keys": program(lambda x, y: lax.sort((x, y, x - y), num_keys=2, dimension=0), _INTEGERS, _INTEGERS),
    "sort, gradient": program(jax.grad(lambda x: jnp.sum(jnp.sin(jnp.sort(x, 1)))), _SPLIT),
    "sort of one dimension": program(jnp.sort, Argument((32,), (X,)), mesh=LINE),
    "ranks": program(lambda x: jnp.argsort(jnp.argsort(x, 1), 1), _SPLIT),
    "median": program(lambda x: (jnp.median(x, 0), jnp.quantile(x, 0.25, 1)), _SPLIT),
    "top-k": program(lambda x: lax.top_k(x, 4), _SPLIT),
    "top-k, in batches": program(lambda x: lax.top_k(x, 3), Argument((4, 8, 8), (X, Y, Z)), mesh=CUBE),
    "searched": program(lambda x, y: jnp.searchsorted(jnp.sort(x), y), Argument((32,), (D,)), Argument((16,), (M,))),
    "unique": program(unique_counts, ints((32,), X), mesh=LINE),
    "histogram": program(lambda x: jnp.bincount(x, length=8), ints((32,), X), mesh=LINE),
    "largest and smallest": program(lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 0), jnp.argmax(x)), _SPLIT),
    "largest of integers": program(lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 0)), _INTEGERS),
    "largest among equals": program(first_largest, _SPLIT),
    "cumulative sum": program(lambda x: jnp.cumsum(x, 1), _SPLIT),
    "cumulative sums of integers": program(lambda x: (jnp.cumsum(x), lax.cumsum(x, 0, reverse=True)), _INTEGERS),
    "cumulative product": program(lambda x: jnp.cumprod(x + 1, 0), _SPLIT),
    "cumulative maximum": program(lambda x: (lax.cummax(x, 0), lax.cummin(x, 1, reverse=True)), _SPLIT),
    "cumulative log-sum-exp": program(lambda x: lax.cumlogsumexp(x, 1), _SPLIT),
    "cumulative sum, gradient": program(jax.grad(lambda x: jnp.sum(jnp.cumsum(x, 0) ** 2)), _SPLIT),
    "record holders": program(record_holders, _INTEGERS),
    "runs": program(run_lengths, ints((32,), X), mesh=LINE),
    "recurrence": program(recurrence, Argument((8, 16, 4), (D, M)), Argument((8, 16, 4), (D, M))),
    "differences": program(lambda x: (jnp.diff(x, axis=0), jnp.gradient(x, axis=1)), _SPLIT),
}
