"""Layouts of one argument that make a step slow, and that no specific rule finds."""

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


IDS = {name: tensor(65536, split=P("data"), dtype="int32") for name in ("user", "item")}

MISTAKES: dict[str, Mistake] = {
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
