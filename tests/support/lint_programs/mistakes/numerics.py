"""Random samples that all devices compute, and decompositions of matrices whose rows are sharded."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from lint_programs.mistake import EIGHT, Mistake
from lint_programs.planted import Written, tensor


def option_price(seed: jax.Array, spot: jax.Array) -> jax.Array:
    z = jax.random.normal(jax.random.wrap_key_data(seed), (2**20, 64))  # mistake
    paths = spot * jnp.exp(jnp.cumsum(0.01 * z - 0.00005, 1))
    return jnp.mean(jnp.maximum(paths.mean(1) - 100.0, 0.0))


def particles(params: Any, seed: jax.Array) -> jax.Array:
    positions = jax.random.uniform(jax.random.wrap_key_data(seed), (2**22, 8))  # mistake
    return jnp.mean(jnp.tanh(positions @ params["up"]) @ params["down"])


def range_finder(x: jax.Array, seed: jax.Array) -> tuple[jax.Array, ...]:
    y = x @ jax.random.normal(jax.random.wrap_key_data(seed), (x.shape[1], 64))
    for _ in range(2):
        q, _ = jnp.linalg.qr(y)  # mistake
        y = x @ jnp.linalg.qr(x.T @ q)[0]
    q, _ = jnp.linalg.qr(y)
    u, s, v = jnp.linalg.svd(q.T @ x, full_matrices=False)
    return q @ u, s, v


SEED = tensor(2, split=P(), dtype="uint32")

MISTAKES: dict[str, Mistake] = {
    "random paths that all devices compute": Mistake(
        "replicated-tensor",
        Written(option_price, (SEED, tensor(split=P())), mesh=EIGHT),
        at=option_price,
        needs_names=True,
    ),
    "random positions that all devices compute": Mistake(
        "generated-not-sharded",
        Written(particles, ({"up": tensor(8, 64), "down": tensor(64, 1)}, SEED), mesh=EIGHT),
        at=particles,
        needs_names=True,
    ),
    "rows of a range finder that are gathered for each decomposition": Mistake(
        "gather-before-custom-call",
        Written(range_finder, (tensor(65536, 2048, split=P("data")), SEED), mesh=EIGHT),
        at=range_finder,
        has_cure=False,
    ),
    "features of a range finder that are sharded rather than its rows": Mistake(
        "sum-over-sharded-operand",
        Written(range_finder, (tensor(65536, 2048, split=P(None, "data")), SEED), mesh=EIGHT),
        "x",
    ),
}
