"""Several projections in one weight, whose product is split into chunks."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from lint_programs.planted import Planted, Written, tensor

WIDTH, HIDDEN = 1024, 4096
ROWS = tensor(4096, WIDTH, split=P("data"))
COLUMNS = P(None, "model")


def gated(gate: jax.Array, up: jax.Array) -> jax.Array:
    return jax.nn.silu(gate) * up


def swiglu(x: jax.Array, w: jax.Array) -> jax.Array:
    gate, up = jnp.split(x @ w, 2, -1)  # mistake
    return gated(gate, up)


def interleaved_swiglu(x: jax.Array, w: jax.Array) -> jax.Array:
    both = jnp.einsum("bd,dcf->bcf", x, w)
    return gated(both[:, 0], both[:, 1])


def swiglu_by_columns(x: jax.Array, w: jax.Array) -> jax.Array:
    """Multiply by a weight whose chunks are interleaved by column, as in some checkpoints."""
    both = (x @ w).reshape(len(x), -1, 2)
    return gated(both[..., 0], both[..., 1])


def swiglu_by_device(x: jax.Array, w: jax.Array) -> jax.Array:
    """Multiply in the program of one device, which splits its own columns."""
    return jax.shard_map(swiglu, in_specs=(P("data"), COLUMNS), out_specs=P("data", "model"))(x, w)


def halves_of_rows(x: jax.Array, w: jax.Array) -> jax.Array:
    """Split chunks along an unsharded dimension."""
    return gated(*jnp.split(x @ w, 2, 0))


def sliced_vocabulary(x: jax.Array, w: jax.Array) -> jax.Array:
    """Take one slice, which drops the padding."""
    return (x @ w)[:, : 2 * HIDDEN - 128]


def fused(function: Any, weight: Any) -> Written:
    return Written(function, (ROWS, weight))


PROGRAMS = {
    "gate and up side by side": Planted(
        "chunks-cross-devices",
        "",
        fused(swiglu, tensor(WIDTH, 2 * HIDDEN, split=COLUMNS)),
        fused(interleaved_swiglu, tensor(WIDTH, 2, HIDDEN, split=P(None, None, "model"))),
    )
}

GOOD = {
    "gate and up in turns": fused(swiglu_by_columns, tensor(WIDTH, 2 * HIDDEN, split=COLUMNS)),
    "gate and up of each device": fused(swiglu_by_device, tensor(WIDTH, 2 * HIDDEN, split=COLUMNS)),
    "chunks that stay on their devices": Written(
        halves_of_rows, (tensor(4096, WIDTH, split=P()), tensor(WIDTH, HIDDEN, split=P(None, "data"))), mesh={"data": 8}
    ),
    "gate and up of few rows": Written(
        swiglu, (tensor(64, WIDTH, split=P("data")), tensor(WIDTH, 2 * HIDDEN, split=COLUMNS))
    ),
    "a vocabulary with padding": fused(sliced_vocabulary, tensor(WIDTH, 2 * HIDDEN, split=COLUMNS)),
}
