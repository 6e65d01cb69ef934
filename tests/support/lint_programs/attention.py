"""Attention with sharded heads."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from lint_programs.planted import Planted, Written, tensor
from sdy.type_helpers import Function

WIDTH, HEAD = 1024, 128


def attend(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    scores = jnp.einsum("bqhgd,bkhd->bhgqk", q, k) / HEAD**0.5
    return jnp.einsum("bhgqk,bkhd->bqhgd", jax.nn.softmax(scores), v)


def few_heads(x: jax.Array, wq: jax.Array, wk: jax.Array, wv: jax.Array, wo: jax.Array) -> jax.Array:
    """Attend with three heads of keys, sharded over four devices."""
    q = jnp.einsum("bsw,whgd->bshgd", x, wq)
    k, v = (jnp.einsum("bsw,whd->bshd", x, w) for w in (wk, wv))
    k, v = (lax.with_sharding_constraint(each, P("data", None, "model")) for each in (k, v))  # mistake
    return jnp.einsum("bqhgd,hgdw->bqw", attend(q, k, v), wo)


def shared_heads(x: jax.Array, wq: jax.Array, wk: jax.Array, wv: jax.Array, wo: jax.Array) -> jax.Array:
    """Attend with sharded groups of query heads and replicated keys."""
    q = lax.with_sharding_constraint(jnp.einsum("bsw,whgd->bshgd", x, wq), P("data", None, None, "model"))
    k, v = (jnp.einsum("bsw,whd->bshd", x, w) for w in (wk, wv))
    return jnp.einsum("bqhgd,hgdw->bqw", attend(q, k, v), wo)


def grouped(function: Function[Any]) -> Written:
    weights = [tensor(WIDTH, 3, 4, HEAD), tensor(WIDTH, 3, HEAD), tensor(WIDTH, 3, HEAD), tensor(3, 4, HEAD, WIDTH)]
    return Written(function, (tensor(16, 1024, WIDTH, split=P("data")), *weights), mesh={"data": 2, "model": 4})


def forgotten(x: jax.Array, wq: jax.Array, wk: jax.Array, wv: jax.Array, wo: jax.Array) -> jax.Array:
    q, k, v = (jnp.einsum("bsw,whd->bshd", x, w) for w in (wq, wk, wv))
    v = lax.with_sharding_constraint(v, P("data", "model"))  # mistake
    return jnp.einsum("bqhd,hdw->bqw", attend(q[:, :, :, None], k, v)[:, :, :, 0], wo)


def by_heads(x: jax.Array, wq: jax.Array, wk: jax.Array, wv: jax.Array, wo: jax.Array) -> jax.Array:
    q, k, v = (jnp.einsum("bsw,whd->bshd", x, w) for w in (wq, wk, wv))
    v = lax.with_sharding_constraint(v, P("data", None, "model"))
    return jnp.einsum("bqhd,hdw->bqw", attend(q[:, :, :, None], k, v)[:, :, :, 0], wo)


def many_heads(function: Function[Any]) -> Written:
    projections = [tensor(WIDTH, 8, HEAD, split=P(None, "model"))] * 3
    out = tensor(8, HEAD, WIDTH, split=P("model"))
    return Written(function, (tensor(16, 512, WIDTH, split=P("data")), *projections, out))


PROGRAMS = {
    "heads that the axis does not divide": Planted(
        "indivisible-dimension", "jax#26946", grouped(few_heads), grouped(shared_heads)
    ),
    "values that are split otherwise than queries": Planted(
        "lost-constraint", "jax#20381", many_heads(forgotten), many_heads(by_heads)
    ),
}
