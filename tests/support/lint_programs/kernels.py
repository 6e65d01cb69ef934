"""Kernels that are opaque to the compiler."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

import sdy
from lint_programs.planted import Planted, Written, tensor


def flash(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    kernel: Any = jax.ffi.ffi_call("flash_attention", jax.ShapeDtypeStruct(q.shape, q.dtype))
    return kernel(q, k, v)  # mistake


def attention_by_kernel(x: jax.Array, wq: jax.Array, wk: jax.Array, wv: jax.Array) -> jax.Array:
    return flash(*(jnp.einsum("bsw,whd->bhsd", x, w) for w in (wq, wk, wv)))


@sdy.register_op("b h s^ d^, b h s^ d^, b h s^ d^ -> b h s^ d^")
def annotated_flash(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    scores = jax.nn.softmax(jnp.einsum("bhqd,bhkd->bhqk", q, k))
    return jnp.einsum("bhqk,bhkd->bhqd", scores, v)


def attention_by_operator(x: jax.Array, wq: jax.Array, wk: jax.Array, wv: jax.Array) -> jax.Array:
    return annotated_flash(*(jnp.einsum("bsw,whd->bhsd", x, w) for w in (wq, wk, wv)))


def attention(function: Any) -> Written:
    weights = [tensor(1024, 8, 128, split=P(None, "model"))] * 3
    return Written(function, (tensor(16, 512, 1024, split=P("data")), *weights))


PROGRAMS = {
    "a kernel without a rule": Planted(
        "gather-before-custom-call",
        "marin#6470",
        attention(attention_by_kernel),
        attention(attention_by_operator),
        flash,
    ),
}
