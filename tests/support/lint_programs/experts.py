"""Mixtures of experts, and programs that leave a mesh axis unused."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from lint_programs.planted import Planted, Written, tensor

TOKENS, WIDTH, HIDDEN, EXPERTS = 4096, 1024, 2048, 8


def experts_on(x: jax.Array, gate: jax.Array, up: jax.Array, down: jax.Array, of_parts: P) -> jax.Array:
    chosen = jax.nn.one_hot(jnp.argmax(x @ gate, -1), EXPERTS)
    parts = jnp.einsum("te,tw->etw", chosen, x)
    parts = lax.with_sharding_constraint(parts, of_parts)
    hidden = jax.nn.gelu(jnp.einsum("etw,ewh->eth", parts, up))
    return jnp.einsum("te,eth,ehw->tw", chosen, hidden, down)


def without_experts(x: jax.Array, gate: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
    return experts_on(x, gate, up, down, P(None, "data"))


def step_on_half(x: jax.Array, w: jax.Array, y: jax.Array) -> jax.Array:
    error = jnp.tanh(x @ w) - y  # mistake
    return w - 0.1 * (x.T @ error)


def half(split: P, count: int = 65536, width: int = WIDTH) -> Written:
    rows = tensor(count, width, split=split)
    return Written(step_on_half, (rows, tensor(width, width), rows))


PROGRAMS = {
    "an axis that nobody uses": Planted(
        "batch-not-sharded", "maxtext#1827", half(P("data")), half(P(("data", "model")))
    ),
    "an axis for which there are too few rows": Planted(
        "unused-axis", "", half(P("data"), 65532, 1023), half(P(("data", "model")), 65536)
    ),
}
