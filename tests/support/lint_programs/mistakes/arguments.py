"""Layouts of one argument or result that make a step slow, or take memory that no device needs."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from lint_programs.mistake import EIGHT, Mistake, constrained, descend
from lint_programs.planted import Written, tensor


def tables_loss(tables: Any, ids: Any) -> jax.Array:
    """Rows of two tables, whose products are the scores of the examples."""
    user, item = (tables[name][ids[name]] for name in ("user", "item"))
    return jnp.mean(jnp.square(jnp.sum(user * item, -1)))


def layers_loss(layers: Any, x: jax.Array) -> jax.Array:
    for layer in layers:
        x = constrained(x + jnp.tanh(x @ layer["up"]) @ layer["down"], P("data", None))
    return jnp.mean(x**2)


def attend(layers: Any, x: jax.Array, bias: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the output of layers of attention, and their weights."""
    weights: list[jax.Array] = []
    for layer in layers:
        q, k = (jnp.einsum("bsd,dhe->bhse", x, layer[name]) for name in "qk")
        weights.append(jax.nn.softmax(jnp.einsum("bhqe,bhke->bhqk", q, k) + bias))
        x = x + jnp.einsum("bhqk,bkd->bqd", weights[-1], x)
    return x, jnp.stack(weights)  # mistake


def attention(layers: Any, x: jax.Array, bias: jax.Array) -> jax.Array:
    return attend(layers, x, bias)[0]


def attending(bias: P, *, returns_weights: bool = False, rows: int = 1) -> Written:
    """Return a program whose heads and batch are sharded, with a bias for each head or for each example."""
    layers = [{name: tensor(512, 16, 64, split=P(None, "model")) for name in "qk"}] * 2
    x, biases = tensor(8, 1024, 512, split=P("data")), tensor(rows, 16 if rows == 1 else 1, 1024, 1024, split=bias)
    results = (P("data"), P()) if returns_weights else None
    return Written(attend if returns_weights else attention, (layers, x, biases), results=results)


def remembering(params: Any, history: Any, x: jax.Array) -> Any:
    """Return gradient descent with the mean of the last gradients, and these gradients."""
    gradients = jax.grad(layers_loss)(params, x)
    history = jax.tree.map(lambda h, g: jnp.concatenate([g[None], h[:-1]]), history, gradients)
    return jax.tree.map(lambda p, h: p - 0.1 * jnp.mean(h, 0), params, history), history


def history_of(results: Any) -> Written:
    """Return steps with sharded parameters and a replicated history."""
    weights, x = {"up": (1024, 4096), "down": (4096, 1024)}, tensor(8192, 1024, split=P("data"))
    params = [{name: tensor(*shape, split=P("data")) for name, shape in weights.items()}] * 2
    history = [{name: tensor(4, *shape, split=P()) for name, shape in weights.items()}] * 2
    return Written(remembering, (params, history, x), donated=(0, 1), results=results, mesh=EIGHT)


IDS = {name: tensor(65536, split=P("data"), dtype="int32") for name in ("user", "item")}

MISTAKES: dict[str, Mistake] = {
    "biases of all heads": Mistake("sliced-argument", attending(P()), "bias"),
    "a mask that is not sharded with the batch": Mistake("sliced-argument", attending(P(), rows=8), "bias"),
    "attention weights that are returned whole": Mistake(
        "resharded-result", attending(P(None, "model"), returns_weights=True), at=attend
    ),
    "a history of gradients on every device": Mistake(
        "sliced-argument", history_of(None), "history[0]['up']", needs_names=True
    ),
    "a history of gradients that is returned whole": Mistake(
        "resharded-result", history_of((P("data"), P())), "history[0]['up']"
    ),
    "the larger of two tables on every device": Mistake(
        "costly-argument",
        Written(
            descend(tables_loss),
            ({"user": tensor(1 << 20, 64, split=P()), "item": tensor(1 << 16, 64, split=P("data"))}, IDS),
            donated=(0,),
            mesh=EIGHT,
        ),
        "params['user']",
    ),
    "a table by rows over the axis of the batch": Mistake(
        "costly-argument",
        Written(
            tables_loss,
            (
                {
                    "user": tensor(1 << 14, 256, split=P(None, "model")),
                    "item": tensor(1 << 18, 256, split=P("data")),
                },
                IDS,
            ),
        ),
        "tables['item']",
    ),
    "matrices of layers sharded along the width of the residual": Mistake(
        "costly-argument",
        Written(
            descend(layers_loss),
            (
                [{"up": tensor(1024, 4096, split=P("model")), "down": tensor(4096, 1024, split=P(None, "model"))}] * 4,
                tensor(8192, 1024, split=P("data")),
            ),
            mesh={"data": 2, "model": 4},
        ),
        "params[0]['down']",
    ),
}
"""The programs by name."""
