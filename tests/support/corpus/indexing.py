"""Gathers, scatters, and slices with dynamic start indices."""

import jax
import jax.numpy as jnp
from jax import lax

from partitioned_programs import CUBE, LINE, Argument, D, M, Program, X, Y, Z, ints, program


def transpose_of_gather(x: jax.Array, indices: jax.Array) -> jax.Array:
    return jax.grad(lambda x: jnp.sum(jnp.sin(x[indices])))(x)


def segments(x: jax.Array, of: jax.Array) -> tuple[jax.Array, jax.Array]:
    return jax.ops.segment_sum(x, of, 8), jax.ops.segment_max(x, of, 8)


def messages(nodes: jax.Array, sources: jax.Array, targets: jax.Array) -> jax.Array:
    """Apply a message-passing layer of a graph network."""
    return jnp.zeros_like(nodes).at[targets].add(jnp.tanh(nodes[sources] + nodes[targets]))


def sparse_product(values: jax.Array, rows: jax.Array, columns: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.zeros((8, x.shape[1])).at[rows].add(values[:, None] * x[columns])


def windows(x: jax.Array, starts: jax.Array) -> jax.Array:
    """Slice three rows from each start index."""
    return jax.vmap(lambda start: lax.dynamic_slice(x, (start, 0), (3, x.shape[1])))(starts)


_SPLIT = Argument((16, 32), (D, M))
_TABLE, _INDEX, _INDICES = Argument((16, 32), (None, M)), ints(()), ints((16,))
_TOKENS = ints((16, 32), D)
_ROW = Argument((16, 32), (None, M))

PROGRAMS: dict[str, Program] = {
    "embedding, rows split": program(lambda t, i: t[i], Argument((256, 64), (M,)), _TOKENS),
    "embedding, columns split": program(lambda t, i: t[i], Argument((256, 64), (None, M)), _TOKENS),
    "embedding over a line": program(lambda t, i: t[i], Argument((32, 4), (X,)), ints((16,), X), mesh=LINE),
    "bag of words": program(lambda t, i: t[i].mean(1), Argument((64, 8), (M,)), _TOKENS),
    "gather by narrow indices": program(lambda t, i: t[i], Argument((256, 4), (D, M)), Argument((16,), (), "uint8")),
    "gather by two indices": program(lambda t, i, j: t[i, j], _SPLIT, _INDICES, _INDICES),
    "gather over three axes": program(
        lambda t, i, j: t[i, :, j], Argument((8, 8, 8), (X, Y, Z)), ints((4,), X), ints((4,), X), mesh=CUBE
    ),
    "gather outside": program(lambda t, i: jnp.take(t, i * 7 - 5, axis=0, mode="clip"), _SPLIT, _INDICES),
    "gather outside, filled": program(lambda t, i: t.at[i * 7 - 5].get(mode="fill", fill_value=9), _SPLIT, _INDICES),
    "gather in batches": program(lambda t, i: jnp.take_along_axis(t, i % 8, 1), Argument((16, 32), (D,)), _TOKENS),
    "gather, gradient": program(transpose_of_gather, _SPLIT, _INDICES),
    "windows": program(windows, _SPLIT, ints((8,), M)),
    "scatter at one place": program(lambda t, i, u: t.at[i].set(u), _SPLIT, ints((1,)), Argument((1, 32), (None, M))),
    "scatter outside": program(lambda t, i, u: t.at[i * 7 - 5].add(u, mode="drop"), _SPLIT, _INDICES, _ROW),
    "scatter in batches": program(lambda t, i, u: t.at[i[:, 0]].add(u), _TABLE, _TOKENS, _SPLIT),
    "scatter of a maximum": program(lambda t, i, u: t.at[i[:, 0]].max(u), _TABLE, _TOKENS, _SPLIT),
    "scatter of a product": program(lambda t, i, u: t.at[i[:, 0]].multiply(u), _TABLE, _TOKENS, _SPLIT),
    "scatter along each row": program(
        lambda t, i, u: jax.vmap(lambda t, i, u: t.at[i].add(u))(t, i, u),
        _SPLIT,
        ints((16, 4), D),
        Argument((16, 4), (D,)),
    ),
    "segments": program(segments, Argument((32, 4), (X,)), ints((32,), X), mesh=LINE),
    "graph": program(messages, Argument((16, 8), (D, M)), ints((24,), D), ints((24,), D)),
    "sparse product": program(
        sparse_product, Argument((16,), (D,)), ints((16,), D), ints((16,), D), Argument((8, 4), (None, M))
    ),
    "dynamic slice": program(lambda x, i: lax.dynamic_slice(x, (i, 0), (4, 32)), _SPLIT, _INDEX),
    "dynamic slice over both": program(lambda x, i: lax.dynamic_slice(x, (i, i * 3), (4, 16)), _SPLIT, _INDEX),
    "dynamic update": program(
        lambda x, u, i: lax.dynamic_update_slice(x, u, (i * 3, i * 5)), _SPLIT, Argument((3, 5)), _INDEX
    ),
    "dynamic roll": program(lambda x, i: jnp.roll(x, i, 0), _SPLIT, _INDEX),
    "static update": program(lambda x, u: x.at[2:5].set(u), _SPLIT, Argument((3, 32), (None, M))),
    "diagonal": program(lambda x: (jnp.diag(x), jnp.trace(x), jnp.tril(x)), Argument((16, 16), (D, M))),
    "choose": program(lambda i, x: jnp.choose(i % 2, (x, -x), mode="clip"), ints((16, 32), D, M), _SPLIT),
}
