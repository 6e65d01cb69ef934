"""Sequence, expert and pipeline parallelism: with handwritten collectives in shard_map, and by shardings."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from placed import GRID, LINE, Build, Placed, integers, normal, placed

_BATCH, _LENGTH, _HEADS, _SIZE = 4, 64, 8, 16
_TOKENS, _WIDTH, _HIDDEN, _EXPERTS = 128, 64, 128, 8


def ring_attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """Ring attention: keys and values rotate, queries stay on their shard of the sequence."""

    @partial(jax.shard_map, in_specs=P(None, "x"), out_specs=P(None, "x"))
    def attend(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        count = lax.axis_size("x")
        ring = [(i, (i + 1) % count) for i in range(count)]

        def step(carry: Any, _: None) -> Any:
            total, largest, norm, k, v = carry
            scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(q.shape[-1])
            larger = jnp.maximum(largest, scores.max(-1))
            weights, shrink = jnp.exp(scores - larger[..., None]), jnp.exp(largest - larger)
            total = total * jnp.moveaxis(shrink, 1, 2)[..., None] + jnp.einsum("bhqk,bkhd->bqhd", weights, v)
            k, v = (lax.ppermute(array, "x", ring) for array in (k, v))
            return (total, larger, norm * shrink + weights.sum(-1), k, v), None

        start = jnp.moveaxis(q[..., 0], 1, 2)
        first = (jnp.zeros_like(q), jnp.full_like(start, -1e30), jnp.zeros_like(start), k, v)
        (total, _, norm, _, _), _ = lax.scan(step, first, None, length=count)
        return total / jnp.moveaxis(norm, 1, 2)[..., None]

    return attend(q, k, v)


def exchanged_attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """Ulysses attention: all-to-all from sharded sequence to sharded heads and back."""

    @partial(jax.shard_map, in_specs=P(None, "x"), out_specs=P(None, "x"))
    def attend(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        q, k, v = (lax.all_to_all(array, "x", 2, 1, tiled=True) for array in (q, k, v))
        return lax.all_to_all(jax.nn.dot_product_attention(q, k, v, is_causal=True), "x", 1, 2, tiled=True)

    return attend(q, k, v)


def constrained_attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """Ulysses attention by sharding constraints."""
    q, k, v = (lax.with_sharding_constraint(array, P(None, None, "x")) for array in (q, k, v))
    attended = jax.nn.dot_product_attention(q, k, v, is_causal=True)
    return lax.with_sharding_constraint(attended, P(None, "x"))


def plain_attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    return jax.nn.dot_product_attention(q, k, v, is_causal=True)


def attention_in_blocks(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """Blockwise attention over keys and values, as in flash attention."""

    def step(carry: Any, block: Any) -> Any:
        total, largest, norm = carry
        k, v = block
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k)
        larger = jnp.maximum(largest, scores.max(-1))
        weights, shrink = jnp.exp(scores - larger[..., None]), jnp.exp(largest - larger)
        total = total * shrink[..., None] + jnp.einsum("bhqk,bkhd->bhqd", weights, v)
        return (total, larger, norm * shrink + weights.sum(-1)), None

    blocks = tuple(jnp.moveaxis(a.reshape(len(a), 4, -1, *a.shape[2:]), 1, 0) for a in (k, v))
    shape = (len(q), q.shape[2], q.shape[1])
    first = (jnp.zeros((*shape, q.shape[-1])), jnp.full(shape, -1e30), jnp.zeros(shape))
    (total, _, norm), _ = lax.scan(step, first, blocks)
    return jnp.moveaxis(total / norm[..., None], 1, 2)


def gradient(function: Callable[..., jax.Array]) -> Callable[..., Any]:
    return jax.grad(lambda *args: jnp.sum(jnp.sin(function(*args))), (0, 1, 2))


def _attention(function: Callable[..., Any], spec: P, mesh: Any = LINE) -> Build:
    def build() -> Placed:
        arrays = (normal(_BATCH, _LENGTH, _HEADS, _SIZE, seed=seed) for seed in range(3))
        return placed(function, *((array, spec) for array in arrays), mesh=mesh)

    return build


def exchanged_experts(x: jax.Array, gate: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
    """Expert parallelism: one expert per device, top-2 routing of sharded tokens by all-to-all."""

    @partial(jax.shard_map, in_specs=(P("x"), P(), P("x"), P("x")), out_specs=P("x"))
    def experts(x: jax.Array, gate: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
        capacity = 2 * 2 * len(x) // _EXPERTS
        weights, chosen = lax.top_k(jax.nn.softmax(x @ gate), 2)
        mask = jax.nn.one_hot(chosen, _EXPERTS).reshape(-1, _EXPERTS)
        place = jnp.cumsum(mask, 0) * mask - 1
        one_hot = jax.nn.one_hot(place.astype(jnp.int32), capacity)
        sent = (one_hot * mask[..., None]).reshape(len(x), 2, _EXPERTS, capacity)
        received = lax.all_to_all(jnp.einsum("tkec,tw->ecw", sent, x), "x", 0, 1, tiled=True)
        made = jnp.einsum("ech,ehw->ecw", jax.nn.relu(jnp.einsum("ecw,ewh->ech", received, up)), down)
        returned = lax.all_to_all(made, "x", 1, 0, tiled=True)
        return jnp.einsum("tkec,ecw,tk->tw", sent, returned, weights)

    return experts(x, gate, up, down)


def dispatched_experts(x: jax.Array, gate: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
    """Top-2 routing with expert capacity and dispatch masks."""
    capacity = 2 * 2 * len(x) // _EXPERTS
    weights, chosen = lax.top_k(jax.nn.softmax(x @ gate), 2)
    mask = jax.nn.one_hot(chosen, _EXPERTS).reshape(-1, _EXPERTS)
    place = (jnp.cumsum(mask, 0) * mask - 1).reshape(len(x), 2, _EXPERTS).astype(jnp.int32)
    sent = jax.nn.one_hot(place, capacity) * mask.reshape(len(x), 2, _EXPERTS, 1)
    received = jnp.einsum("tkec,tw->ecw", sent, x)
    made = jnp.einsum("ech,ehw->ecw", jax.nn.relu(jnp.einsum("ecw,ewh->ech", received, up)), down)
    return jnp.einsum("tkec,ecw,tk->tw", sent, made, weights)


def sorted_experts(x: jax.Array, gate: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
    """Dropless routing: tokens sorted by expert, and a ragged matrix product."""
    weights, chosen = lax.top_k(jax.nn.softmax(x @ gate), 1)
    order = jnp.argsort(chosen[:, 0])
    sizes = jnp.bincount(chosen[:, 0], length=_EXPERTS)
    hidden = jax.nn.relu(lax.ragged_dot(x[order], up, sizes))
    made = lax.ragged_dot(hidden, down, sizes)
    return jnp.zeros_like(x).at[order].set(made) * weights


def weighted_experts(x: jax.Array, gate: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
    """Soft mixture: every expert computes every token."""
    hidden = jax.nn.relu(jnp.einsum("tw,ewh->teh", x, up))
    return jnp.einsum("teh,ehw,te->tw", hidden, down, jax.nn.softmax(x @ gate))


def _experts(function: Callable[..., Any], specs: tuple[P, ...], mesh: Any = LINE) -> Build:
    def build() -> Placed:
        shapes = ((_TOKENS, _WIDTH), (_WIDTH, _EXPERTS), (_EXPERTS, _WIDTH, _HIDDEN), (_EXPERTS, _HIDDEN, _WIDTH))
        arrays = (normal(*shape, seed=i, scale=shape[-2] ** -0.5) for i, shape in enumerate(shapes))
        return placed(function, *zip(arrays, specs, strict=True), mesh=mesh)

    return build


def expert_gradient(function: Callable[..., jax.Array]) -> Callable[..., Any]:
    return jax.grad(lambda x, *w: jnp.sum(jnp.sin(function(x, *w))), (1, 2, 3))


def pipeline() -> Placed:
    """Pipeline parallelism: one layer per device, with microbatches passed to the next device."""

    @partial(jax.shard_map, in_specs=(P("x"), P()), out_specs=P())
    def run(w: jax.Array, batches: jax.Array) -> jax.Array:
        stages, here = lax.axis_size("x"), lax.axis_index("x")
        onward = [(i, i + 1) for i in range(stages - 1)]
        padded = jnp.concatenate([batches, jnp.zeros((stages - 1, *batches.shape[1:]))])

        def step(previous: jax.Array, batch: jax.Array) -> Any:
            made = jnp.tanh(jnp.where(here == 0, batch, previous) @ w[0])
            return lax.ppermute(made, "x", onward), made

        start = lax.pcast(jnp.zeros_like(batches[0]), "x", to="varying")
        _, made = lax.scan(step, start, padded)
        return lax.psum(jnp.where(here == stages - 1, made[stages - 1 :], 0), "x")

    return placed(run, (normal(8, _WIDTH, _WIDTH, scale=0.1), P("x")), (normal(16, 8, _WIDTH), P()))


def state_space() -> Placed:
    """A linear recurrence along a sharded sequence, by an associative scan."""

    def run(decay: jax.Array, x: jax.Array, w: jax.Array) -> jax.Array:
        def combine(a: Any, b: Any) -> Any:
            return a[0] * b[0], b[0] * a[1] + b[1]

        gates = jnp.exp(-jax.nn.softplus(x @ decay))
        return lax.associative_scan(combine, (gates, x), axis=1)[1] @ w

    arrays = (normal(_WIDTH, _WIDTH), normal(_BATCH, 2 * _LENGTH, _WIDTH), normal(_WIDTH, _WIDTH))
    return placed(run, *zip(arrays, (P(), P(None, "x"), P()), strict=True))


def state_space_gradient() -> Placed:
    """The gradient of a linear recurrence with sharded channels and batch."""

    def loss(decay: jax.Array, w: jax.Array, x: jax.Array) -> jax.Array:
        def combine(a: Any, b: Any) -> Any:
            return a[0] * b[0], b[0] * a[1] + b[1]

        gates = jnp.broadcast_to(jax.nn.sigmoid(decay), x.shape)
        return jnp.mean(jnp.square(lax.associative_scan(combine, (gates, x), axis=1)[1] @ w))

    arrays = (normal(_WIDTH), normal(_WIDTH, _HIDDEN), normal(8, _LENGTH, _WIDTH))
    specs = (P("model"), P("model"), P("data", None, "model"))
    return placed(jax.grad(loss, (0, 1)), *zip(arrays, specs, strict=True), mesh=GRID)


def linear_attention() -> Placed:
    """Chunked linear attention."""

    def run(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        def step(state: jax.Array, chunk: Any) -> Any:
            q, k, v = chunk
            scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * jnp.tril(jnp.ones((q.shape[1],) * 2))
            made = jnp.einsum("bhqk,bkhd->bqhd", scores, v) + jnp.einsum("bqhd,bhde->bqhe", q, state)
            return state + jnp.einsum("bkhd,bkhe->bhde", k, v), made

        chunks = tuple(jnp.moveaxis(a.reshape(len(a), 4, -1, *a.shape[2:]), 1, 0) for a in (q, k, v))
        start = jnp.zeros((len(q), q.shape[2], q.shape[3], v.shape[3]))
        made = lax.scan(step, start, chunks)[1]
        return jnp.moveaxis(made, 0, 1).reshape(v.shape)

    arrays = (normal(_BATCH, _LENGTH, _HEADS, _SIZE, seed=seed, scale=0.3) for seed in range(3))
    return placed(run, *((array, P("data", None, "model")) for array in arrays), mesh=GRID)


def matrices_over_a_ring() -> Placed:
    """A collective matmul: the left side is gathered shard by shard, overlapped with products."""

    @partial(jax.shard_map, in_specs=(P("x"), P(None, "x")), out_specs=P(None, "x"))
    def multiply(x: jax.Array, w: jax.Array) -> jax.Array:
        count, here, rows = lax.axis_size("x"), lax.axis_index("x"), len(x)
        made = lax.pcast(jnp.zeros((count * rows, w.shape[1])), "x", to="varying")
        for step in range(count):
            made = lax.dynamic_update_slice(made, x @ w, ((here - step) % count * rows, 0))
            x = lax.ppermute(x, "x", [(i, (i + 1) % count) for i in range(count)])
        return made

    return placed(multiply, (normal(_TOKENS, _WIDTH), P("x")), (normal(_WIDTH, _HIDDEN), P(None, "x")))


def packed_documents() -> Placed:
    """Attention on packed documents with a block-diagonal mask."""

    def run(x: jax.Array, qkv: jax.Array, documents: jax.Array) -> jax.Array:
        q, k, v = jnp.einsum("bsw,cwhd->cbshd", x, qkv)
        mask = documents[:, None, :, None] == documents[:, None, None, :]
        return jax.nn.dot_product_attention(q, k, v, mask=mask, is_causal=True)

    documents = np.sort(integers(8, _LENGTH, below=4), -1)
    arrays = (normal(8, _LENGTH, _WIDTH), normal(3, _WIDTH, _HEADS, _SIZE, scale=0.1), documents)
    specs = (P("data"), P(None, None, "model"), P("data"))
    return placed(run, *zip(arrays, specs, strict=True), mesh=GRID)


_SEQUENCE = P(None, "x")
_BY_EXPERT = (P("x"), P(), P("x"), P("x"))
_BY_EXPERT_ON_A_GRID = (P("data"), P(None, "model"), P("model"), P("model"))
_WITHIN_EXPERTS = (P("data"), P(), P(None, None, "model"), P(None, "model"))

PROGRAMS: dict[str, Build] = {
    "ring attention": _attention(ring_attention, _SEQUENCE),
    "ring attention's gradient": _attention(gradient(ring_attention), _SEQUENCE),
    "attention with heads exchanged": _attention(exchanged_attention, _SEQUENCE),
    "attention with heads exchanged, gradient": _attention(gradient(exchanged_attention), _SEQUENCE),
    "attention with heads exchanged by constraints": _attention(constrained_attention, _SEQUENCE),
    "attention, sequence split": _attention(plain_attention, _SEQUENCE),
    "attention's gradient, sequence split": _attention(gradient(plain_attention), _SEQUENCE),
    "attention's gradient, batch and heads split": _attention(
        gradient(plain_attention), P("data", None, "model"), GRID
    ),
    "attention in blocks, batch and sequence split": _attention(attention_in_blocks, P("data", "model"), GRID),
    "attention in blocks, gradient, batch and heads split": _attention(
        gradient(attention_in_blocks), P("data", None, "model"), GRID
    ),
    "linear attention in chunks": linear_attention,
    "attention of packed documents": packed_documents,
    "experts, tokens exchanged": _experts(exchanged_experts, _BY_EXPERT),
    "experts, tokens exchanged, gradient": _experts(expert_gradient(exchanged_experts), _BY_EXPERT),
    "experts, tokens dispatched": _experts(dispatched_experts, _BY_EXPERT),
    "experts, tokens dispatched, on a grid": _experts(dispatched_experts, _BY_EXPERT_ON_A_GRID, GRID),
    "experts, tokens dispatched, gradient, on a grid": _experts(
        expert_gradient(dispatched_experts), _BY_EXPERT_ON_A_GRID, GRID
    ),
    "experts, tokens sorted": _experts(sorted_experts, _BY_EXPERT),
    "experts, tokens sorted, split within": _experts(sorted_experts, _WITHIN_EXPERTS, GRID),
    "experts, all weighted, gradient": _experts(expert_gradient(weighted_experts), _BY_EXPERT_ON_A_GRID, GRID),
    "pipeline of eight layers": pipeline,
    "state space model, sequence split": state_space,
    "state space model, gradient, channels split": state_space_gradient,
    "product over a ring": matrices_over_a_ring,
}
