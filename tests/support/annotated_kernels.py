"""User-written kernels, each as a plain function and as an annotated operator."""

import jax
import jax.numpy as jnp

import sdy


def attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """Compute causal attention of (batch, heads, sequence, head size) arrays."""
    scores = jnp.einsum("bhsd,bhtd->bhst", q, k) / q.shape[-1] ** 0.5
    causal = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    return jnp.einsum("bhst,bhtd->bhsd", jax.nn.softmax(jnp.where(causal, scores, -1e9)), v)


def grouped_matmul(x: jax.Array, w: jax.Array) -> jax.Array:
    """Multiply the matrices of each group: (groups, rows, inner) by (groups, inner, columns)."""
    return jnp.einsum("gmk,gkn->gmn", x, w)


def cross_entropy(x: jax.Array, unembedding: jax.Array, labels: jax.Array) -> jax.Array:
    """Sum the cross-entropy of rows (rows, width), without storing the logits of all rows."""
    logits = x @ unembedding
    picked = jnp.take_along_axis(logits, labels[:, None], axis=1)[:, 0]
    return jnp.sum(jax.nn.logsumexp(logits, axis=1) - picked)


def layer_norm(x: jax.Array, scale: jax.Array, bias: jax.Array, epsilon: float = 1e-5) -> jax.Array:
    """Normalize each row of the last dimension, then scale and shift it."""
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + epsilon) * scale + bias


attention_op = sdy.register_op("b h s^ d^, b h s^ d^, b h s^ d^ -> b h s^ d^")(attention)
grouped_matmul_op = sdy.register_op("g m k+, g k+ n -> g m n")(grouped_matmul)
cross_entropy_op = sdy.register_op("n+ e^, e^ v^, n+ -> 1")(cross_entropy)
layer_norm_op = sdy.register_op("* d^, d^, d^ -> * d^")(layer_norm)
