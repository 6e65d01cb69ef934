"""Loops and branches."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from partitioned_programs import CUBE, LINE, Argument, D, M, Program, X, Y, Z, ints, program


def loop(x: jax.Array) -> jax.Array:
    return lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, jnp.sin(c[1]) @ jnp.ones((32, 32)) / 32), (0, x))[1]


def scan(x: jax.Array, w: jax.Array) -> Any:
    return lax.scan(lambda c, w: (jnp.tanh(c @ w), c.sum()), x, w)


def branch(x: jax.Array, p: jax.Array) -> jax.Array:
    return lax.cond(p > 3, lambda x: jnp.tanh(x @ x.T), lambda x: x @ x.T, x)


def switch(i: jax.Array, x: jax.Array) -> jax.Array:
    return lax.switch(i, [jnp.sin, lambda x: x[::-1], lambda x: x - x.sum(0)], x)


def kalman(state: jax.Array, motion: jax.Array, seen: jax.Array) -> Any:
    """Run a Kalman filter for each state of a batch."""

    def step(carry: Any, seen: jax.Array) -> Any:
        mean, spread = carry
        mean, spread = mean @ motion, 0.9 * spread + 0.1
        gain = spread / (spread + 1)
        return (mean + gain * (seen - mean), (1 - gain) * spread), mean.sum(-1)

    return lax.scan(step, (state, jnp.ones_like(state)), seen)


def conjugate_gradient(matrix: jax.Array, target: jax.Array) -> jax.Array:
    symmetric = matrix @ matrix.T + jnp.eye(len(matrix))

    def step(carry: Any) -> Any:
        x, residual, direction, square = carry
        along = symmetric @ direction
        size = square / (direction @ along)
        x, residual = x + size * direction, residual - size * along
        next_square = residual @ residual
        return x, residual, residual + next_square / square * direction, next_square

    return lax.while_loop(
        lambda carry: carry[3] > 1e-9, step, (jnp.zeros_like(target), target, target, target @ target)
    )[0]


def power_iteration(matrix: jax.Array) -> jax.Array:
    def step(_: jax.Array, v: jax.Array) -> jax.Array:
        v = matrix @ v
        return v / jnp.sqrt(v @ v)

    return lax.fori_loop(0, 5, step, jnp.ones(len(matrix)))


def nested(x: jax.Array) -> jax.Array:
    return lax.fori_loop(0, 3, lambda i, x: lax.fori_loop(0, i + 1, lambda j, x: jnp.sin(x) + x.mean() * j, x), x)


def matrix_powers(x: jax.Array) -> jax.Array:
    """Multiply all prefixes of a sequence of matrices."""
    return lax.associative_scan(jnp.matmul, x)


def sliced(x: jax.Array) -> jax.Array:
    """Read a row of one tensor and write a row of another in each iteration."""

    def step(i: jax.Array, out: jax.Array) -> jax.Array:
        row = lax.dynamic_index_in_dim(x, i, 0, False)
        return lax.dynamic_update_index_in_dim(out, jnp.cumsum(row), 7 - i, 0)

    return lax.fori_loop(0, 8, step, jnp.zeros_like(x))


def life(board: jax.Array) -> jax.Array:
    def step(_: jax.Array, board: jax.Array) -> jax.Array:
        around = sum(jnp.roll(board, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
        return ((around == 3) | ((board == 1) & (around == 2))).astype("int32")

    return lax.fori_loop(0, 4, step, board % 2)


def means(points: jax.Array, centres: jax.Array) -> jax.Array:
    """Cluster points by k-means (Lloyd's algorithm)."""

    def step(_: jax.Array, centres: jax.Array) -> jax.Array:
        nearest = jnp.argmin(jnp.sum((points[:, None] - centres) ** 2, -1), 1)
        mine = jax.nn.one_hot(nearest, len(centres))
        return mine.T @ points / jnp.maximum(mine.sum(0), 1)[:, None]

    return lax.fori_loop(0, 3, step, centres)


def sinkhorn(cost: jax.Array) -> jax.Array:
    def step(_: jax.Array, kernel: jax.Array) -> jax.Array:
        kernel = kernel / kernel.sum(0, keepdims=True)
        return kernel / kernel.sum(1, keepdims=True)

    return lax.fori_loop(0, 4, step, jnp.exp(-cost))


def bodies(places: jax.Array, speeds: jax.Array) -> Any:
    def step(_: jax.Array, carry: Any) -> Any:
        places, speeds = carry
        apart = places[None] - places[:, None]
        pull = apart / (jnp.sum(apart**2, -1, keepdims=True) + 0.1) ** 1.5
        speeds = speeds + 0.01 * pull.sum(1)
        return places + 0.01 * speeds, speeds

    return lax.fori_loop(0, 3, step, (places, speeds))


_SPLIT = Argument((16, 32), (D, M))

PROGRAMS: dict[str, Program] = {
    "while": program(loop, _SPLIT),
    "scan": program(scan, Argument((16, 32), (D,)), Argument((3, 32, 32), (None, None, M))),
    "scan of what is split": program(scan, Argument((16, 32), (D,)), Argument((4, 32, 32), (D, None, M))),
    "cond": program(branch, _SPLIT, ints(())),
    "switch": program(switch, ints(()), _SPLIT),
    "filter": program(kalman, Argument((16, 4), (D,)), Argument((4, 4)), Argument((5, 16, 4), (None, D))),
    "conjugate gradient": program(
        conjugate_gradient, Argument((16, 16), (D, M)), Argument((16,), (D,)), tolerance=1e-3
    ),
    "power iteration": program(power_iteration, Argument((16, 16), (X, Y)), mesh=CUBE, tolerance=1e-4),
    "loop in a loop": program(nested, Argument((8, 8), ((X, Y), Z)), mesh=CUBE),
    "prefixes of matrices": program(matrix_powers, Argument((8, 4, 4), (D, M))),
    "rows in turn": program(sliced, Argument((8, 16), (None, X)), mesh=LINE),
    "rows in turn, rows split": program(sliced, Argument((8, 16), (D, M))),
    "life": program(life, ints((16, 16), D, M)),
    "means": program(means, Argument((32, 4), (D,)), Argument((4, 4), (M,))),
    "transport": program(sinkhorn, Argument((16, 16), (D, M))),
    "bodies": program(bodies, Argument((16, 3), (X,)), Argument((16, 3), (X,)), mesh=LINE),
}
