"""Sequences of layers: products, embeddings, and loops over them."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from lint_programs.planted import Planted, Written, tensor

WIDTH, HIDDEN = 1024, 4096


def mlp(x: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
    hidden = jax.nn.gelu(x @ up)
    return hidden @ down  # mistake


def perceptron(down: P) -> Written:
    x, up = tensor(1024, WIDTH, split=P("data", None)), tensor(WIDTH, HIDDEN, split=P(None, "model"))
    return Written(mlp, (x, up, tensor(HIDDEN, WIDTH, split=down)))


def embed(table: jax.Array, tokens: jax.Array, out: jax.Array) -> jax.Array:
    x = table[tokens]  # mistake
    return jnp.tanh(x) @ out


def embedding(table: P) -> Written:
    tokens = tensor(16, 512, split=P("data", None), dtype="int32")
    out = tensor(WIDTH, 128_000, split=P(None, "model"))
    return Written(embed, (tensor(128_000, WIDTH, split=table), tokens, out))


def scan_to_columns(x: jax.Array, weights: jax.Array) -> jax.Array:
    def layer(x: jax.Array, w: jax.Array) -> tuple[jax.Array, None]:
        y = jnp.tanh(lax.with_sharding_constraint(x, P("data", None)) @ w)
        return lax.with_sharding_constraint(y, P(None, "data")), None  # mistake

    return lax.scan(layer, lax.with_sharding_constraint(x, P(None, "data")), weights)[0]


def scan_of_rows(x: jax.Array, weights: jax.Array) -> jax.Array:
    def layer(x: jax.Array, w: jax.Array) -> tuple[jax.Array, None]:
        return lax.with_sharding_constraint(jnp.tanh(x @ w), P("data", None)), None

    return lax.scan(layer, lax.with_sharding_constraint(x, P("data", None)), weights)[0]


def scan(function: Any) -> Written:
    return Written(function, (tensor(8192, WIDTH), tensor(12, WIDTH, WIDTH)), mesh={"data": 8})


PROGRAMS = {
    "a product whose sides are split alike": Planted(
        "conflict-by-order", "jax#20381", perceptron(P(None, "model")), perceptron(P("model", None))
    ),
    "an embedding on every device": Planted(
        "replicated-tensor", "sglang-jax#953", embedding(P(None, None)), embedding(P("model", None))
    ),
    "a loop whose carry goes to and fro": Planted(
        "avoidable-reshard", "maxtext#1827", scan(scan_to_columns), scan(scan_of_rows)
    ),
}
