"""Annotated operators for tests, registered on import."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import sdy


@sdy.register_op("m^ kd+, kd+ n -> m^ n")
def operator(x: jax.Array, w: jax.Array, h: float = 0) -> jax.Array:
    return jnp.matmul(x, w)


@sdy.register_op("(h^ m^) kd+, kd+ n -> h^ m^ n", name="matmul_custom")
def matmul_and_view(x: jax.Array, w: jax.Array, h: float) -> jax.Array:
    out = jnp.matmul(x, w)
    return out.reshape(h, out.shape[0] // h, out.shape[1])


@sdy.register_op("(h t) k -> h t k")
def reshape(tensor: jax.Array, h: int = 8) -> jax.Array:
    return tensor.reshape(h, tensor.shape[0] // h, tensor.shape[-1])


@sdy.register_op("* t -> a * t")
def tile(x: jax.Array, a: int) -> jax.Array:
    return jnp.broadcast_to(x, (a, *x.shape))


@sdy.register_op("a+ b, ? -> a+ b, b, ?")
def parts_and_sum(x: jax.Array, scale: float) -> tuple[jax.Array, jax.Array, str]:
    return x * scale, x.sum(0), "done"


def product_of(x: tuple[int, ...], w: tuple[int, ...], **_: Any) -> str:
    return f"m k+, k+ n -> m n{' ' if w else ''}"


@sdy.register_op(product_of)
def made(x: jax.Array, w: jax.Array, twice: bool = False) -> jax.Array:
    return (2 if twice else 1) * (x @ w)


def array(*shape: int) -> jax.Array:
    """Return an array of different numbers."""
    return jnp.asarray(np.sin(np.arange(math.prod(shape), dtype=np.float32)).reshape(shape))
