"""Train steps independent of the model's library: a loss of parameters, an optimizer, a batch."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax


def train_step(optimizer: Any, loss: Callable[..., jax.Array], has_value: bool = False) -> Callable[..., Any]:
    """Return the usual train step; `has_value` passes the loss to the optimizer, for line searches."""

    def step(params: Any, state: Any, *batch: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(params, *batch)
        more = {"value": value, "grad": gradients, "value_fn": lambda p: loss(p, *batch)} if has_value else {}
        updates, state = optimizer.update(gradients, state, params, **more)
        return optax.apply_updates(params, updates), state, value

    return step


def train_step_with_statistics(optimizer: Any, loss: Callable[..., Any]) -> Callable[..., Any]:
    """Return a train step with mutable statistics, such as those of batch norm, which `loss` returns."""

    def step(params: Any, statistics: Any, state: Any, *batch: Any) -> Any:
        (value, statistics), gradients = jax.value_and_grad(loss, has_aux=True)(params, statistics, *batch)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), statistics, state, value

    return step


def cross_entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def next_token_loss(logits: jax.Array, tokens: jax.Array) -> jax.Array:
    """Return the next-token cross-entropy; `logits` are (batch, sequence, vocabulary)."""
    return cross_entropy(logits[:, :-1], tokens[:, 1:])


def rotated(x: jax.Array) -> jax.Array:
    """Apply rotary position embeddings to `x`, (batch, sequence, heads, width)."""
    half = x.shape[-1] // 2
    angles = jnp.arange(x.shape[1])[:, None] * 10_000 ** (-jnp.arange(half) / half)
    sin, cos = (f(angles)[:, None, :].astype(x.dtype) for f in (jnp.sin, jnp.cos))
    left, right = jnp.split(x, 2, -1)
    return jnp.concatenate([left * cos - right * sin, right * cos + left * sin], -1)
