"""Programs that XLA's own partitioner, in jax 0.10.2, refuses, cannot run, or computes wrongly."""

import jax
import jax.numpy as jnp
from jax import lax

from partitioned_programs import Argument, D, M, Program, constrain, ints, program


def poisson(source: jax.Array) -> jax.Array:
    """Solve Poisson's equation on a torus by Fourier transforms. XLA's program fails at run time."""
    rows, columns = (jnp.fft.fftfreq(size) for size in source.shape)
    waves = (2 * jnp.pi) ** 2 * (rows[:, None] ** 2 + columns**2)
    solved = jnp.fft.fft2(source) / jnp.where(waves == 0, 1, waves)
    return constrain(jnp.fft.ifft2(solved.at[0, 0].set(0)).real, D, M)


def sort_gradient(x: jax.Array) -> jax.Array:
    """Differentiate a sort. XLA aborts if the sorted dimension is uneven."""
    return jax.grad(lambda x: jnp.sum(jnp.sin(jnp.sort(constrain(x, D, M), 0))))(x)


def pool_gradient(x: jax.Array) -> jax.Array:
    """Differentiate a max pool. XLA computes wrong numbers if windows overlap along uneven dimensions."""

    def loss(x: jax.Array) -> jax.Array:
        x = constrain(x, None, None, D, M)
        return jnp.sum(jnp.sin(3 * lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 3, 3), (1, 1, 1, 1), "SAME")))

    return jax.grad(loss)(x)


def scatter_outside(t: jax.Array, indices: jax.Array, updates: jax.Array) -> jax.Array:
    """Scatter windows of three rows, some out of bounds. XLA computes wrong numbers if the indices are sharded."""
    rows = lax.ScatterDimensionNumbers((1, 2), (), (0,))
    return lax.scatter_max(constrain(t, D, M), constrain((indices * 3 - 5)[:, None], D), updates, rows, mode="drop")


def parity(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Reduce with xor. XLA refuses this reduction of a sharded dimension."""
    return lax.reduce_xor(x, (0, 1)), lax.reduce_xor(x, (1,))


PROGRAMS: dict[str, Program] = {
    "transform of a grid": program(poisson, Argument((16, 8), (D, M))),
    "gradient of an uneven sort": program(sort_gradient, Argument((13, 7))),
    "gradient of uneven pooling": program(pool_gradient, Argument((2, 2, 9, 7))),
    "scatter of windows outside": program(scatter_outside, Argument((16, 8)), ints((6,)), Argument((6, 3, 8))),
    "parity": program(parity, ints((16, 32), D, M)),
}
