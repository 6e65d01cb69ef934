"""Autoregressive decoding, a token at a time, with a cache of keys and values."""

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from partitioned_programs import CUBE, LINE, Argument, D, M, Program, X, Y, Z, ints, program


def attend(query: jax.Array, keys: jax.Array, values: jax.Array, length: jax.Array) -> jax.Array:
    """Attend from [batch, heads, size] to caches [batch, places, heads, size] with `length` tokens."""
    scores = jnp.einsum("bhd,bshd->bhs", query, keys) / math.sqrt(query.shape[-1])
    weights = jax.nn.softmax(jnp.where(jnp.arange(keys.shape[1]) < length, scores, -1e9))
    return jnp.einsum("bhs,bshd->bhd", weights, values)


def decode(x: jax.Array, qkv: jax.Array, keys: jax.Array, values: jax.Array, place: jax.Array) -> Any:
    q, k, v = jnp.einsum("bw,cwhd->cbhd", x, qkv)
    keys = lax.dynamic_update_slice_in_dim(keys, k[:, None], place, 1)
    values = lax.dynamic_update_slice_in_dim(values, v[:, None], place, 1)
    return attend(q, keys, values, place + 1), keys, values


def decode_each(x: jax.Array, qkv: jax.Array, keys: jax.Array, values: jax.Array, places: jax.Array) -> Any:
    """Decode a token of each sequence of the batch, each at its own position."""
    q, k, v = jnp.einsum("bw,cwhd->cbhd", x, qkv)
    rows = jnp.arange(len(x))
    keys, values = keys.at[rows, places].set(k), values.at[rows, places].set(v)
    scores = jnp.einsum("bhd,bshd->bhs", q, keys)
    seen = jnp.arange(keys.shape[1]) <= places[:, None, None]
    return jnp.einsum("bhs,bshd->bhd", jax.nn.softmax(jnp.where(seen, scores, -1e9)), values), keys, values


def grouped_queries(query: jax.Array, keys: jax.Array, values: jax.Array) -> jax.Array:
    """Attend with several query heads for each head of keys and values."""
    query = query.reshape(query.shape[0], keys.shape[2], -1, query.shape[2])
    weights = jax.nn.softmax(jnp.einsum("bkgd,bskd->bkgs", query, keys))
    return jnp.einsum("bkgs,bskd->bkgd", weights, values).reshape(query.shape[0], -1, query.shape[3])


def greedy(embedding: jax.Array, w: jax.Array, first: jax.Array) -> jax.Array:
    """Decode six tokens greedily after the first."""

    def step(i: jax.Array, carry: Any) -> Any:
        state, tokens = carry
        state = jnp.tanh(state @ w + embedding[tokens[:, i]])
        return state, tokens.at[:, i + 1].set(jnp.argmax(state @ embedding.T, -1).astype("int32"))

    tokens = jnp.zeros((len(first), 7), "int32").at[:, 0].set(first)
    return lax.fori_loop(0, 6, step, (jnp.ones((len(first), w.shape[0])) * 0.1, tokens))[1]


def sample(logits: jax.Array, key: jax.Array) -> jax.Array:
    kept = jnp.sort(logits, -1)[:, -4]
    return jax.random.categorical(key, jnp.where(logits < kept[:, None], -1e9, logits))


def beams(scores: jax.Array, logits: jax.Array, keys: jax.Array) -> Any:
    """Select the best continuations of the beams, and gather the caches of the beams that they continue."""
    total = (scores[..., None] + jax.nn.log_softmax(logits)).reshape(len(scores), -1)
    best, places = lax.top_k(total, scores.shape[1])
    parents = places // logits.shape[-1]
    return best, places % logits.shape[-1], jnp.take_along_axis(keys, parents[..., None, None], 1)


def paged(query: jax.Array, pages: jax.Array, table: jax.Array) -> jax.Array:
    """Attend to a paged cache; `table` holds the pages of each sequence."""
    keys = pages[table].reshape(len(query), -1, query.shape[-1])
    return jnp.einsum("bs,bsd->bd", jax.nn.softmax(jnp.einsum("bd,bsd->bs", query, keys)), keys)


def rotate(x: jax.Array, places: jax.Array) -> jax.Array:
    """Apply a rotary embedding to [batch, heads, size]."""
    half = x.shape[-1] // 2
    angles = places[:, None, None] / 100.0 ** (jnp.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * jnp.cos(angles) - b * jnp.sin(angles), a * jnp.sin(angles) + b * jnp.cos(angles)], -1)


_X, _QKV, _PLACE = Argument((8, 8), (D,)), Argument((3, 8, 4, 4), (None, None, M)), ints(())
_CACHE = Argument((8, 12, 4, 4), (D, None, M))
_LONG = Argument((8, 16, 4, 4), (None, X))

PROGRAMS: dict[str, Program] = {
    "heads split": program(decode, _X, _QKV, _CACHE, _CACHE, _PLACE),
    "places split": program(decode, Argument((8, 8)), Argument((3, 8, 4, 4)), _LONG, _LONG, _PLACE, mesh=LINE),
    "places and heads split": program(
        decode,
        Argument((8, 8), (X,)),
        Argument((3, 8, 4, 4), (None, None, Z)),
        *(Argument((8, 12, 4, 4), (X, Y, Z)) for _ in range(2)),
        _PLACE,
        mesh=CUBE,
    ),
    "a place for each": program(decode_each, _X, _QKV, _CACHE, _CACHE, ints((8,), D)),
    "shared keys": program(
        grouped_queries, Argument((8, 8, 4), (D, M)), *(Argument((8, 6, 2, 4), (D, None, M)) for _ in range(2))
    ),
    "greedy": program(greedy, Argument((16, 8), (M,)), Argument((8, 8), (None, M)), ints((8,), D)),
    "sample": program(sample, Argument((8, 16), (D, M)), Argument((2,), (), "uint32")),
    "beams": program(
        beams, Argument((8, 3), (D,)), Argument((8, 3, 16), (D, None, M)), Argument((8, 3, 5, 4), (D, None, None, M))
    ),
    "paged": program(paged, Argument((8, 4), (D,)), Argument((16, 2, 4), (M,)), ints((8, 3), D)),
    "rotary embedding": program(rotate, Argument((8, 4, 8), (D, None, M)), ints((8,), D)),
}
