"""Steps over microbatches: accumulated gradients, and metrics of them."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from lint_programs.planted import Planted, Written, tensor

WIDTH = 1024


def loss(w: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.mean((jnp.tanh(x @ w) - x) ** 2)


def accumulated(w: jax.Array, batches: jax.Array) -> jax.Array:
    """Accumulate gradients, beginning with the decay of the weights: a sum that begins with zeros is moved."""

    def add(total: jax.Array, x: jax.Array) -> tuple[jax.Array, None]:
        return total + jax.grad(loss)(w, x), None  # mistake

    return w - 0.1 * lax.scan(add, w / 1000, batches)[0]


def accumulated_by_device(w: jax.Array, batches: jax.Array) -> jax.Array:
    """Accumulate gradients per device, in a sharded dimension that is summed at the end."""
    parts = batches.reshape(batches.shape[0], 8, -1, WIDTH)

    def add(total: jax.Array, x: jax.Array) -> tuple[jax.Array, None]:
        return total + jax.vmap(jax.grad(loss), (None, 0))(w, x), None

    zeros = lax.with_sharding_constraint(jnp.zeros((8, *w.shape)), P("data"))
    return w - 0.1 * (w / 1000 + lax.scan(add, zeros, parts)[0].mean(0))


def accumulation(function: Any) -> Written:
    arguments = tensor(WIDTH, WIDTH, split=P()), tensor(16, 8192, WIDTH, split=P(None, "data"))
    return Written(function, arguments, mesh={"data": 8})


def measured(x: jax.Array, w: jax.Array) -> Any:
    y = x @ w
    return y, [jnp.max(y[:, column]) for column in range(128)]  # mistake


def measured_at_once(x: jax.Array, w: jax.Array) -> Any:
    y = x @ w
    return y, list(jnp.max(y, axis=0)[:128])


def measuring(function: Any) -> Written:
    return Written(function, (tensor(8192, WIDTH, split=P("data")), tensor(WIDTH, WIDTH)), mesh={"data": 8})


PROGRAMS = {
    "gradients summed in each turn": Planted(
        "collective-in-loop", "", accumulation(accumulated), accumulation(accumulated_by_device)
    ),
    "numbers one by one": Planted("many-small-collectives", "", measuring(measured), measuring(measured_at_once)),
}
