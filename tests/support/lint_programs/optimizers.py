"""Training steps with optimizer state."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from lint_programs.planted import Planted, Tensor, Written, tensor

WIDTH, HIDDEN = 1024, 4096
SHAPES = {"up": (WIDTH, HIDDEN), "down": (HIDDEN, WIDTH)}
SPLIT = {"up": P(None, "model"), "down": P("model", None)}
WHOLE = {"up": P(), "down": P()}


def loss(params: Any, x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.mean((jax.nn.gelu(x @ params["up"]) @ params["down"] - y) ** 2)


def adam_step(params: Any, mu: Any, nu: Any, x: jax.Array, y: jax.Array) -> Any:
    grads = jax.grad(loss)(params, x, y)
    mu = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mu, grads)
    nu = jax.tree.map(lambda n, g: 0.999 * n + 0.001 * g * g, nu, grads)  # mistake
    params = jax.tree.map(lambda p, m, n: p - 1e-3 * m / (jnp.sqrt(n) + 1e-8), params, mu, nu)
    return params, mu, nu


def split_by(specs: dict[str, P]) -> dict[str, Tensor]:
    return {name: tensor(*shape, split=specs[name]) for name, shape in SHAPES.items()}


def adam(nu: dict[str, P]) -> Written:
    rows = tensor(8192, WIDTH, split=P("data"))
    return Written(
        adam_step,
        (split_by(SPLIT), split_by(SPLIT), split_by(nu), rows, rows),
        results=(SPLIT, SPLIT, nu),
        donated=(0, 1, 2),
    )


def decode(cache: jax.Array, x: jax.Array, w: jax.Array, at: jax.Array) -> Any:
    cache = jax.lax.dynamic_update_slice(cache, (x @ w)[:, None], (0, at, 0))
    return cache, jnp.einsum("bsw,bw->bs", cache, x)


def decode_elsewhere(cache: jax.Array, *rest: jax.Array) -> Any:
    cache, scores = decode(jax.lax.with_sharding_constraint(cache, P("data")), *rest)
    return jax.lax.with_sharding_constraint(cache, P(None, "data")), scores  # mistake


def decoding(function: Any) -> Written:
    cache = tensor(64, 4096, WIDTH, split=P("data"))
    arguments = cache, tensor(64, WIDTH), tensor(WIDTH, WIDTH), tensor(dtype="int32")
    return Written(function, arguments, donated=(0,), mesh={"data": 8})


PROGRAMS = {
    "an optimizer's state on every device": Planted("optimizer-state", "maxtext#1827", adam(WHOLE), adam(SPLIT)),
    "a cache that lies elsewhere afterwards": Planted(
        "donated-not-reused", "", decoding(decode_elsewhere), decoding(decode)
    ),
}
