"""Well-sharded programs, in which no rule finds anything."""

import math
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from lint_programs import projections
from lint_programs.planted import Written, tensor

WIDTH, HIDDEN = 1024, 4096
constrained = lax.with_sharding_constraint


def norm(x: jax.Array) -> jax.Array:
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)


def attention(x: jax.Array, qkv: jax.Array, out: jax.Array) -> jax.Array:
    q, k, v = jnp.einsum("bsw,cwhd->cbshd", x, qkv)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1])
    return jnp.einsum("bhqk,bkhd,hdw->bqw", jax.nn.softmax(scores), v, out)


def block(x: jax.Array, qkv: jax.Array, out: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
    x = x + attention(norm(x), qkv, out)
    return x + jax.nn.gelu(norm(x) @ up) @ down


def block_loss(weights: Any, x: jax.Array) -> jax.Array:
    return jnp.mean(block(x, *weights) ** 2)


def train(weights: Any, x: jax.Array) -> Any:
    return jax.tree.map(lambda w, g: w - 1e-3 * g, weights, jax.grad(block_loss)(weights, x))


SHAPES = (3, WIDTH, 8, 128), (8, 128, WIDTH), (WIDTH, HIDDEN), (HIDDEN, WIDTH)
BY_HEADS = P(None, None, "model"), P("model"), P(None, "model"), P("model")
FULLY = P(None, "data"), P(None, None, "data"), P("data"), P(None, "data")
EVERYWHERE = (P(),) * 4


def weights(specs: tuple[P, ...]) -> Any:
    return tuple(tensor(*shape, split=spec) for shape, spec in zip(SHAPES, specs, strict=True))


def rows(*axes: Any) -> Any:
    return tensor(16, 512, WIDTH, split=P(*axes))


def sequence_parallel(weights: Any, x: jax.Array) -> jax.Array:
    qkv, out, up, down = weights
    split = P("data", "model")
    x = constrained(x + attention(constrained(norm(x), split), qkv, out), split)
    return constrained(x + jax.nn.gelu(constrained(norm(x), split) @ up) @ down, split)


def scanned(stacked: Any, x: jax.Array) -> jax.Array:
    return lax.scan(lambda x, w: (block(x, *w), None), x, stacked)[0]


def stacked(specs: tuple[P, ...]) -> Any:
    return tuple(tensor(12, *shape, split=P(None, *spec)) for shape, spec in zip(SHAPES, specs, strict=True))


def experts(x: jax.Array, gate: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
    """Dispatch tokens in groups sharded over data to experts sharded over data, by an all-to-all."""
    chosen = jax.nn.one_hot(jnp.argmax(x @ gate, -1), gate.shape[-1])
    parts = constrained(jnp.einsum("gte,gtw->egtw", chosen, x), P("data"))
    made = jnp.einsum("egth,ehw->egtw", jax.nn.gelu(jnp.einsum("egtw,ewh->egth", parts, up)), down)
    return jnp.einsum("gte,egtw->gtw", chosen, constrained(made, P(None, "data")))


def zero_step(w: jax.Array, mu: jax.Array, x: jax.Array) -> Any:
    """Take an optimizer step whose state has more shards than the parameter (ZeRO)."""
    gradient = jax.grad(lambda w: jnp.mean((x @ w) ** 2))(w)
    mu = 0.9 * mu + 0.1 * constrained(gradient, P("data"))
    return w - 1e-3 * mu, mu


def convolved(kernels: Any, images: jax.Array) -> jax.Array:
    for kernel in kernels:
        images = jax.nn.relu(lax.conv_general_dilated(images, kernel, (1, 1), "SAME"))
    return images.mean((2, 3))


def decode(cache: jax.Array, x: jax.Array, wk: jax.Array, at: jax.Array) -> Any:
    cache = lax.dynamic_update_slice(cache, jnp.einsum("bw,whd->bhd", x, wk)[:, None], (0, at, 0, 0))
    return cache, jnp.einsum("bshd,bw,whd->bhs", cache, x, wk)


def rematerialized(stacked: Any, x: jax.Array) -> Any:
    saved = jax.checkpoint_policies.dots_with_no_batch_dims_saveable

    def batched(x: jax.Array, w: Any) -> jax.Array:
        return constrained(block(x, *w), P("data"))

    layer = jax.checkpoint(batched, policy=saved)

    def loss(stacked: Any) -> jax.Array:
        return jnp.mean(lax.scan(lambda x, w: (layer(x, w), None), x, stacked)[0] ** 2)

    return jax.tree.map(lambda w, g: w - 1e-3 * g, stacked, jax.grad(loss)(stacked))


def generate(stacked: Any, cache: jax.Array, x: jax.Array) -> Any:
    """Decode tokens in a loop, of layers in a loop, with a cache."""

    def token(carry: Any, at: jax.Array) -> Any:
        def layer(x: jax.Array, of_layer: Any) -> Any:
            cache, (qkv, out, up, down) = of_layer
            q, *new = jnp.einsum("bw,cwhd->cbhd", norm(x), qkv)
            keys, values = cache = lax.dynamic_update_slice(cache, jnp.stack(new)[:, :, None], (0, 0, at, 0, 0))
            scores = jnp.einsum("bhd,bkhd->bhk", q, keys)
            x = x + jnp.einsum("bhk,bkhd,hdw->bw", jax.nn.softmax(scores), values, out)
            return x + jax.nn.gelu(norm(x) @ up) @ down, cache

        x, cache = lax.scan(layer, carry[0], (carry[1], stacked))
        return (x, cache), None

    return lax.scan(token, (x, cache), jnp.arange(64))[0]


def decode_with_heads(params: Any, cache: Any, x: jax.Array, at: jax.Array) -> Any:
    """Decode one token of a layer, whose weights and cache are sharded by the heads."""
    q, *new = ((x @ params[name]).reshape(len(x), 32, -1) for name in "qkv")
    keys, values = (lax.dynamic_update_slice(c, n[:, None], (0, at, 0, 0)) for c, n in zip(cache, new, strict=True))
    scores = jax.nn.softmax(jnp.einsum("bhd,bkhd->bhk", q, keys))
    return x + jnp.einsum("bhk,bkhd->bhd", scores, values).reshape(x.shape) @ params["out"], (keys, values)


def generating(specs: tuple[P, ...], *heads: str) -> Written:
    cache = tensor(12, 2, 16, 512, 8, 128, split=P(None, None, "data", None, *heads))
    return Written(generate, (stacked(specs), cache, tensor(16, WIDTH, split=P("data"))), (1,))


def gathered_narrow(x: jax.Array, w: jax.Array, scale: jax.Array) -> jax.Array:
    return x @ (constrained(w, P()).astype("float32") * scale)


def cast_without_gather(x: jax.Array, w: jax.Array) -> jax.Array:
    return x.astype("bfloat16") @ constrained(w, P("data")).astype("bfloat16")


def summed_in_each_iteration(w: jax.Array, x: jax.Array) -> jax.Array:
    """Return the result of iterations that read the sum over devices."""

    def local(w: jax.Array, x: jax.Array) -> jax.Array:
        return lax.scan(lambda x, _: (lax.psum(jnp.where(x > 0, x, 0) @ w[0], "data"), None), x, None, length=8)[0]

    return jax.shard_map(local, in_specs=(P("data"), P()), out_specs=P(), check_vma=False)(w, x)


def filled(w: jax.Array, xs: jax.Array) -> jax.Array:
    """Return a buffer that each device fills with its own products, summed once after the loop."""

    def local(w: jax.Array, xs: jax.Array) -> jax.Array:
        def tick(buffer: jax.Array, at: jax.Array) -> tuple[jax.Array, None]:
            return lax.dynamic_update_index_in_dim(buffer, xs[at] @ w, at, 0), None

        return lax.psum(lax.scan(tick, jnp.zeros((len(xs), 64, WIDTH)), jnp.arange(len(xs)))[0], "data")

    return jax.shard_map(local, in_specs=(P("data"), P(None, None, "data")), out_specs=P(), check_vma=False)(w, xs)


def interleaved(weights: Any, first: jax.Array, second: jax.Array) -> jax.Array:
    """Return the loss of two batches that are computed in one, with the rows of both on each device."""
    both = jnp.stack([first, second], 1).reshape(-1, WIDTH)
    scores = (jnp.tanh(both @ weights[0]) @ weights[1]).reshape(-1, 2, WIDTH)
    return jnp.mean(scores[:, 0]) - jnp.mean(scores[:, 1])


def joined_features(weights: Any, first: jax.Array, second: jax.Array) -> jax.Array:
    return jnp.tanh(jnp.concatenate([first, second], -1) @ weights)


def similarities(weights: Any, images: jax.Array, texts: jax.Array) -> jax.Array:
    """Return a loss of all pairs, for which the smaller half of them is gathered."""
    x, y = (jnp.tanh(each @ w) for each, w in zip((images, texts), weights, strict=True))
    return jnp.mean(jnp.tanh(x @ constrained(y, P()).T))


LINE = {"data": 8}
BY_HEADS_STACKED = tuple(P(None, *spec) for spec in BY_HEADS)
FULLY_STACKED = tuple(P(None, *spec) for spec in FULLY)


def iterated(matrix: jax.Array, x: jax.Array) -> jax.Array:
    """Multiply a vector by a matrix hundreds of times: each sum over devices needs the last one."""

    def step(x: jax.Array, _: None) -> tuple[jax.Array, None]:
        y = jnp.dot(x, matrix)
        return y / jnp.sqrt(jnp.sum(y * y)), None

    return lax.scan(step, x, None, length=512)[0]


PROGRAMS: dict[str, Written] = {
    "data parallel": Written(train, (weights(EVERYWHERE), rows("data")), (0,), mesh=LINE),
    "Megatron": Written(train, (weights(BY_HEADS), rows("data")), (0,), BY_HEADS),
    "fully sharded": Written(train, (weights(FULLY), rows("data")), (0,), FULLY, LINE),
    "sequence parallel": Written(sequence_parallel, (weights(BY_HEADS), rows("data", "model"))),
    "layers in a loop": Written(scanned, (stacked(BY_HEADS), rows("data"))),
    "layers in a loop, fully sharded": Written(scanned, (stacked(FULLY), rows("data")), mesh=LINE),
    "experts": Written(
        experts,
        (
            tensor(8, 512, WIDTH, split=P("data")),
            tensor(WIDTH, 16),
            tensor(16, WIDTH, HIDDEN, split=P("data")),
            tensor(16, HIDDEN, WIDTH, split=P("data")),
        ),
        mesh=LINE,
    ),
    "a state that is split further": Written(
        zero_step,
        (
            tensor(WIDTH, HIDDEN, split=P()),
            tensor(WIDTH, HIDDEN, split=P("data")),
            tensor(8192, WIDTH, split=P("data")),
        ),
        (0, 1),
        (P(), P("data")),
        LINE,
    ),
    "images": Written(
        convolved,
        ([tensor(64, 32, 3, 3, split=P()), tensor(64, 64, 3, 3, split=P())], tensor(64, 32, 64, 64, split=P("data"))),
        mesh=LINE,
    ),
    "decoding": Written(
        decode,
        (
            tensor(64, 2048, 8, 128, split=P("data", None, "model")),
            tensor(64, WIDTH, split=P("data")),
            tensor(WIDTH, 8, 128, split=P(None, "model")),
            tensor(dtype="int32"),
        ),
        (0,),
    ),
    "rematerialized layers": Written(rematerialized, (stacked(BY_HEADS), rows("data")), (0,), BY_HEADS_STACKED),
    "rematerialized layers, data parallel": Written(
        rematerialized, (stacked(EVERYWHERE), rows("data")), (0,), EVERYWHERE, LINE
    ),
    "rematerialized layers, fully sharded": Written(
        rematerialized, (stacked(FULLY), rows("data")), (0,), FULLY_STACKED, LINE
    ),
    "decoding a token, weights sharded by the heads": Written(
        decode_with_heads,
        (
            {name: tensor(4096, 4096, split=P(None, "model"), dtype="bfloat16") for name in "qkv"}
            | {"out": tensor(4096, 4096, split=P("model"), dtype="bfloat16")},
            (tensor(32, 2048, 32, 128, split=P("data", None, "model"), dtype="bfloat16"),) * 2,
            tensor(32, 4096, split=P("data"), dtype="bfloat16"),
            tensor(dtype="int32"),
        ),
        (1,),
        mesh={"data": 2, "model": 4},
    ),
    "decoding in a loop": generating(BY_HEADS, "model"),
    "decoding in a loop, data parallel": replace(generating(EVERYWHERE), mesh=LINE),
    "weights that are cast after a gather": Written(
        gathered_narrow,
        (rows("data"), tensor(WIDTH, HIDDEN, split=P("data"), dtype="int8"), tensor(HIDDEN, split=P())),
        mesh=LINE,
    ),
    "weights that are cast without a gather": Written(
        cast_without_gather, (rows("data"), tensor(WIDTH, HIDDEN, split=P("data"))), mesh=LINE
    ),
    "sums that each iteration reads": Written(
        summed_in_each_iteration,
        (tensor(8, WIDTH, WIDTH, split=P("data")), tensor(4096, WIDTH)),
        mesh=LINE,
    ),
    "small sums that the next iteration needs": Written(
        iterated, (tensor(4096, 4096, split=P(None, "data")), tensor(4096, split=P("data"))), mesh=LINE
    ),
    "a buffer that is summed after a loop": Written(
        filled, (tensor(WIDTH, WIDTH, split=P("data")), tensor(64, 64, WIDTH, split=P(None, None, "data"))), mesh=LINE
    ),
    "two batches in one, interleaved": Written(
        interleaved,
        ((tensor(WIDTH, HIDDEN), tensor(HIDDEN, WIDTH)), *[tensor(8192, WIDTH, split=P("data"))] * 2),
        mesh=LINE,
    ),
    "two batches joined by features": Written(
        joined_features,
        (tensor(2 * WIDTH, HIDDEN), *[tensor(8192, WIDTH, split=P("data"))] * 2),
        mesh=LINE,
    ),
    "a loss of all pairs": Written(
        similarities,
        ([tensor(WIDTH, 256)] * 2, *[tensor(8192, WIDTH, split=P("data"))] * 2),
        mesh=LINE,
    ),
    **projections.GOOD,
}
