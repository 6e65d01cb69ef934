"""JAX programs of real sizes: steps of training and of decoding.

They are only lowered, not run: their arguments are shapes and types.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

Program = tuple[Callable[..., Any], Sequence[Any]]
"""A function, and the shapes and types of its arguments."""

Tree = Any


def _array(*shape: int, dtype: Any = "float32") -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


def _integers(*shape: int) -> jax.ShapeDtypeStruct:
    return _array(*shape, dtype="int32")


def _trained(loss: Callable[..., jax.Array], params: Tree, *batch: jax.ShapeDtypeStruct) -> Program:
    """Return a training step with Adam, which keeps two moments of each parameter."""

    def step(params: Tree, first: Tree, second: Tree, *batch: jax.Array) -> Any:
        value, gradients = jax.value_and_grad(loss)(params, *batch)
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g.astype(m.dtype), first, gradients)
        second = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * jnp.square(g.astype(v.dtype)), second, gradients)
        params = jax.tree.map(
            lambda p, m, v: p - (1e-3 * m * lax.rsqrt(v + 1e-8)).astype(p.dtype), params, first, second
        )
        return params, first, second, value

    moments = jax.tree.map(lambda each: _array(*each.shape), params)
    return step, [params, moments, moments, *batch]


def _cross_entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits.astype(jnp.float32)), labels[..., None], -1)
    return -jnp.mean(picked)


def _normalized(x: jax.Array, scale: jax.Array) -> jax.Array:
    return x * lax.rsqrt(jnp.mean(jnp.square(x), -1, keepdims=True) + 1e-6) * scale


def _swish(x: jax.Array) -> jax.Array:
    return x * jax.nn.sigmoid(x)


def _attended(q: jax.Array, k: jax.Array, v: jax.Array, causal: bool) -> jax.Array:
    """Compute attention of [batch, length, heads, size] queries, keys and values, with a result of that shape."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1])
    if causal:
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -1e9)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)


def _block_params(width: int, heads: int, hidden: int, layers: tuple[int, ...] = (), dtype: Any = "float32") -> Tree:
    shapes = {
        "attention_norm": (width,),
        "q": (width, heads, width // heads),
        "k": (width, heads, width // heads),
        "v": (width, heads, width // heads),
        "o": (heads, width // heads, width),
        "mlp_norm": (width,),
        "up": (width, hidden),
        "down": (hidden, width),
    }
    return {name: _array(*layers, *shape, dtype=dtype) for name, shape in shapes.items()}


def _block(x: jax.Array, w: Mapping[str, jax.Array], causal: bool = True) -> jax.Array:
    """Apply a transformer block to [batch, length, width], with a result of that shape."""
    y = _normalized(x, w["attention_norm"])
    q, k, v = (jnp.einsum("bsw,whd->bshd", y, w[name]) for name in "qkv")
    x = x + jnp.einsum("bshd,hdw->bsw", _attended(q, k, v, causal), w["o"])
    return x + jax.nn.gelu(_normalized(x, w["mlp_norm"]) @ w["up"]) @ w["down"]


def _transformer(layers: int, width: int, batch: int, length: int = 512, vocabulary: int = 32768) -> Program:
    def loss(params: Tree, tokens: jax.Array, labels: jax.Array) -> jax.Array:
        x = params["embedding"][tokens]
        for block in params["blocks"]:
            x = _block(x, block)
        return _cross_entropy(_normalized(x, params["norm"]) @ params["unembedding"], labels)

    params = {
        "embedding": _array(vocabulary, width),
        "blocks": [_block_params(width, width // 128, 4 * width)] * layers,
        "norm": _array(width),
        "unembedding": _array(width, vocabulary),
    }
    return _trained(loss, params, _integers(batch, length), _integers(batch, length))


def _scanned_transformer(layers: int, width: int, batch: int, length: int = 1024) -> Program:
    """A transformer whose layers are a scan over stacked weights, rematerialized for the gradient; in bfloat16."""

    def loss(params: Tree, tokens: jax.Array, labels: jax.Array) -> jax.Array:
        body = jax.checkpoint(_block)
        x, _ = lax.scan(lambda x, w: (body(x, w), None), params["embedding"][tokens], params["blocks"])
        return _cross_entropy(_normalized(x, params["norm"]) @ params["embedding"].T, labels)

    params = {
        "embedding": _array(32768, width, dtype="bfloat16"),
        "blocks": _block_params(width, width // 128, 4 * width, (layers,), "bfloat16"),
        "norm": _array(width, dtype="bfloat16"),
    }
    return _trained(loss, params, _integers(batch, length), _integers(batch, length))


def _rotated(x: jax.Array) -> jax.Array:
    """Apply rotary position embeddings to [batch, length, heads, size]."""
    half = x.shape[-1] // 2
    angles = jnp.arange(x.shape[1])[:, None] * 10000.0 ** (-jnp.arange(half) / half)
    sine, cosine = (each[:, None, :].astype(x.dtype) for each in (jnp.sin(angles), jnp.cos(angles)))
    left, right = x[..., :half], x[..., half:]
    return jnp.concatenate([left * cosine - right * sine, right * cosine + left * sine], -1)


def _llama(layers: int, width: int, heads: int, groups: int, hidden: int, batch: int, length: int = 2048) -> Program:
    """A LLaMA-like model with grouped-query attention and a gated MLP, in bfloat16."""
    size = width // heads

    def layer(x: jax.Array, w: Mapping[str, jax.Array]) -> jax.Array:
        y = _normalized(x, w["attention_norm"])
        q, k, v = ((y @ w[name]).reshape(*x.shape[:2], -1, size) for name in "qkv")
        q, k = _rotated(q), _rotated(k)
        q = q.reshape(*x.shape[:2], groups, heads // groups, size)
        scores = jnp.einsum("bqghd,bkgd->bghqk", q, k) / math.sqrt(size)
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -1e9)
        attended = jnp.einsum("bghqk,bkgd->bqghd", jax.nn.softmax(scores), v)
        x = x + attended.reshape(x.shape) @ w["o"]
        y = _normalized(x, w["mlp_norm"])
        return x + (_swish(y @ w["gate"]) * (y @ w["up"])) @ w["down"]

    def loss(params: Tree, tokens: jax.Array, labels: jax.Array) -> jax.Array:
        x = params["embedding"][tokens]
        for w in params["layers"]:
            x = layer(x, w)
        return _cross_entropy(_normalized(x, params["norm"]) @ params["unembedding"], labels)

    shapes = {
        "attention_norm": (width,),
        "q": (width, width),
        "k": (width, groups * size),
        "v": (width, groups * size),
        "o": (width, width),
        "mlp_norm": (width,),
        "gate": (width, hidden),
        "up": (width, hidden),
        "down": (hidden, width),
    }
    params = {
        "embedding": _array(32000, width, dtype="bfloat16"),
        "layers": [{name: _array(*shape, dtype="bfloat16") for name, shape in shapes.items()}] * layers,
        "norm": _array(width, dtype="bfloat16"),
        "unembedding": _array(width, 32000, dtype="bfloat16"),
    }
    return _trained(loss, params, _integers(batch, length), _integers(batch, length))


def _experts(layers: int, width: int, hidden: int, experts: int, batch: int, length: int = 512) -> Program:
    """A top-1 mixture of experts, with dispatch by one-hot masks."""
    capacity = 2 * length // experts

    def mixed(x: jax.Array, w: Mapping[str, jax.Array]) -> jax.Array:
        gates = jax.nn.softmax(x @ w["router"])
        chosen = jax.nn.one_hot(jnp.argmax(gates, -1), experts)
        place = jnp.cumsum(chosen, 1) * chosen - 1
        mask = jax.nn.one_hot(place.astype(jnp.int32), capacity) * chosen[..., None]
        given = jnp.einsum("bsec,bsw->ebcw", mask, x)
        done = jnp.einsum("ebch,ehw->ebcw", jax.nn.gelu(jnp.einsum("ebcw,ewh->ebch", given, w["up"])), w["down"])
        return jnp.einsum("bsec,ebcw->bsw", mask * jnp.max(gates, -1)[..., None, None], done)

    def loss(params: Tree, x: jax.Array, y: jax.Array) -> jax.Array:
        for w in params:
            x = x + mixed(_normalized(x, w["norm"]), w)
        return jnp.mean(jnp.square(x - y))

    params = [
        {
            "norm": _array(width),
            "router": _array(width, experts),
            "up": _array(experts, width, hidden),
            "down": _array(experts, hidden, width),
        }
    ] * layers
    return _trained(loss, params, _array(batch, length, width), _array(batch, length, width))


def _vision_transformer(layers: int, width: int, batch: int) -> Program:
    """A vision transformer for images of 224 x 224 pixels, in patches of 16 x 16."""

    def loss(params: Tree, images: jax.Array, labels: jax.Array) -> jax.Array:
        patches = images.reshape(batch, 14, 16, 14, 16, 3).transpose(0, 1, 3, 2, 4, 5).reshape(batch, 196, 768)
        x = patches @ params["patches"] + params["places"]
        for block in params["blocks"]:
            x = _block(x, block, causal=False)
        return _cross_entropy(_normalized(x, params["norm"]).mean(1) @ params["head"], labels)

    params = {
        "patches": _array(768, width),
        "places": _array(196, width),
        "blocks": [_block_params(width, width // 64, 4 * width)] * layers,
        "norm": _array(width),
        "head": _array(width, 1000),
    }
    return _trained(loss, params, _array(batch, 224, 224, 3), _integers(batch))


def _convolved(x: jax.Array, w: jax.Array, stride: int = 1) -> jax.Array:
    return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def _batch_normalized(x: jax.Array, scale: jax.Array) -> jax.Array:
    mean, square = x.mean((0, 1, 2)), jnp.square(x).mean((0, 1, 2))
    return (x - mean) * lax.rsqrt(square - jnp.square(mean) + 1e-5) * scale


def _residual_network(batch: int) -> Program:
    """A residual network of four stages with two blocks each, for images of 224 x 224 pixels."""
    stages = (64, 128, 256, 512)

    def block(x: jax.Array, w: Mapping[str, jax.Array], stride: int) -> jax.Array:
        y = jax.nn.relu(_batch_normalized(_convolved(x, w["first"], stride), w["first_norm"]))
        y = _batch_normalized(_convolved(y, w["second"]), w["second_norm"])
        return jax.nn.relu((_convolved(x, w["shortcut"], stride) if "shortcut" in w else x) + y)

    def loss(params: Tree, images: jax.Array, labels: jax.Array) -> jax.Array:
        x = jax.nn.relu(_convolved(images, params["stem"], 2))
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
        for number, w in enumerate(params["blocks"]):
            x = block(x, w, 2 if "shortcut" in w and number else 1)
        return _cross_entropy(x.mean((1, 2)) @ params["head"], labels)

    blocks: list[Tree] = []
    for before, after in zip((64, *stages), stages, strict=False):
        norms = {"first_norm": _array(after), "second_norm": _array(after)}
        first = {"first": _array(3, 3, before, after), "second": _array(3, 3, after, after), **norms}
        if before != after:
            first["shortcut"] = _array(1, 1, before, after)
        blocks += [first, {"first": _array(3, 3, after, after), "second": _array(3, 3, after, after), **norms}]
    params = {"stem": _array(7, 7, 3, 64), "blocks": blocks, "head": _array(512, 1000)}
    return _trained(loss, params, _array(batch, 224, 224, 3), _integers(batch))


def _u_net(batch: int, size: int = 256) -> Program:
    """A U-Net: downsampling and upsampling convolutions with skip connections."""
    widths = (64, 128, 256, 512)

    def loss(params: Tree, images: jax.Array, noise: jax.Array) -> jax.Array:
        x, kept = _convolved(images, params["stem"]), list[jax.Array]()
        for w in params["down"]:
            x = _swish(_normalized(_convolved(x, w["same"]), w["norm"]))
            kept.append(x)
            x = _convolved(x, w["narrow"], 2)
        for w in params["up"]:
            x = jnp.repeat(jnp.repeat(_convolved(x, w["widen"]), 2, 1), 2, 2)
            x = _convolved(jnp.concatenate([x, kept.pop()], -1), w["join"])
            x = _swish(_normalized(x, w["norm"]))
        return jnp.mean(jnp.square(_convolved(x, params["head"]) - noise))

    following = [*widths[1:], 2 * widths[-1]]
    params = {
        "stem": _array(3, 3, 3, widths[0]),
        "down": [
            {"same": _array(3, 3, width, width), "narrow": _array(3, 3, width, after), "norm": _array(width)}
            for width, after in zip(widths, following, strict=True)
        ],
        "up": [
            {"widen": _array(3, 3, before, width), "join": _array(3, 3, 2 * width, width), "norm": _array(width)}
            for width, before in [*zip(widths, following, strict=True)][::-1]
        ],
        "head": _array(3, 3, widths[0], 3),
    }
    return _trained(loss, params, _array(batch, size, size, 3), _array(batch, size, size, 3))


def _graph_network(layers: int, nodes: int, edges: int, width: int) -> Program:
    """A graph network: messages along edges, summed at each node."""

    def loss(params: Tree, x: jax.Array, senders: jax.Array, receivers: jax.Array, y: jax.Array) -> jax.Array:
        for w in params:
            messages = jax.nn.relu(x[senders] @ w["message"])
            x = x + jax.nn.relu(jax.ops.segment_sum(messages, receivers, nodes) @ w["update"])
        return jnp.mean(jnp.square(x - y))

    params = [{"message": _array(width, width), "update": _array(width, width)}] * layers
    features = _array(nodes, width)
    return _trained(loss, params, features, _integers(edges), _integers(edges), features)


def _recurrent(layers: int, width: int, batch: int, length: int = 256) -> Program:
    """LSTM layers, each a scan over the sequence."""

    def layer(xs: jax.Array, w: Mapping[str, jax.Array]) -> jax.Array:
        def cell(state: tuple[jax.Array, jax.Array], x: jax.Array) -> Any:
            h, c = state
            i, f, g, o = jnp.split(x @ w["input"] + h @ w["hidden"] + w["bias"], 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        nothing = jnp.zeros((batch, width))
        return lax.scan(cell, (nothing, nothing), xs)[1]

    def loss(params: Tree, xs: jax.Array, ys: jax.Array) -> jax.Array:
        for w in params:
            xs = layer(xs, w)
        return jnp.mean(jnp.square(xs - ys))

    params = [
        {"input": _array(width, 4 * width), "hidden": _array(width, 4 * width), "bias": _array(4 * width)}
    ] * layers
    return _trained(loss, params, _array(length, batch, width), _array(length, batch, width))


def _decoding(layers: int, width: int, batch: int, length: int = 4096) -> Program:
    """A decoding step: one token of each sequence, with an updated key-value cache."""
    heads, size = width // 128, 128

    def decoded(params: Tree, keys: Sequence[Any], values: Sequence[Any], token: jax.Array, place: jax.Array) -> Any:
        x = params["embedding"][token]
        next_keys, next_values = list[jax.Array](), list[jax.Array]()
        for w, key, value in zip(params["blocks"], keys, values, strict=True):
            y = _normalized(x, w["attention_norm"])
            q, k, v = (jnp.einsum("bw,whd->bhd", y, w[name]) for name in "qkv")
            key = lax.dynamic_update_slice_in_dim(key, k[:, None], place, 1)
            value = lax.dynamic_update_slice_in_dim(value, v[:, None], place, 1)
            scores = jnp.einsum("bhd,bshd->bhs", q, key) / math.sqrt(size)
            scores = jax.nn.softmax(jnp.where(jnp.arange(length) <= place, scores, -1e9))
            x = x + jnp.einsum("bhd,hdw->bw", jnp.einsum("bhs,bshd->bhd", scores, value), w["o"])
            x = x + jax.nn.gelu(_normalized(x, w["mlp_norm"]) @ w["up"]) @ w["down"]
            next_keys.append(key)
            next_values.append(value)
        return next_keys, next_values, jnp.argmax(x @ params["embedding"].T, -1)

    params = {
        "embedding": _array(32768, width, dtype="bfloat16"),
        "blocks": [_block_params(width, heads, 4 * width, dtype="bfloat16")] * layers,
    }
    cache = [_array(batch, length, heads, size, dtype="bfloat16")] * layers
    return decoded, [params, cache, cache, _integers(batch), _integers()]


def _recommendation(rows: int, width: int, batch: int) -> Program:
    """A recommendation model: lookups in an embedding table larger than the memory of a device, and an MLP."""

    def loss(params: Tree, items: jax.Array, clicked: jax.Array) -> jax.Array:
        x = params["table"][items].reshape(batch, -1)
        for w in params["layers"][:-1]:
            x = jax.nn.relu(x @ w)
        logits = (x @ params["layers"][-1])[:, 0]
        return jnp.mean(jnp.log(1 + jnp.exp(logits)) - logits * clicked)

    sizes = (26 * width, 4096, 1024, 1)
    layers = [_array(*pair) for pair in pairwise(sizes)]
    return _trained(loss, {"table": _array(rows, width), "layers": layers}, _integers(batch, 26), _array(batch))


MODELS: Mapping[str, Callable[[int], Program]] = {
    "transformer, 2 layers": lambda devices: _transformer(2, 4096, 8 * devices),
    "transformer, 12 layers": lambda devices: _transformer(12, 2048, 8 * devices),
    "transformer, batch of 8": lambda _: _transformer(12, 2048, 8),
    "transformer, batch of 1,024": lambda _: _transformer(12, 2048, 1024),
    "transformer, 48 layers": lambda devices: _transformer(48, 2048, 4 * devices),
    "transformer, 48 layers by scan": lambda devices: _scanned_transformer(48, 4096, 4 * devices),
    "LLaMA-like, 8 layers": lambda devices: _llama(8, 4096, 32, 8, 14336, 2 * devices),
    "mixture of experts": lambda devices: _experts(4, 2048, 8192, 64, 16 * devices),
    "vision transformer": lambda devices: _vision_transformer(12, 1024, 64 * devices),
    "residual network": lambda devices: _residual_network(128 * devices),
    "U-Net": lambda devices: _u_net(32 * devices),
    "graph network": lambda devices: _graph_network(4, 2**17 * devices, 2**19 * devices, 1024),
    "LSTM": lambda devices: _recurrent(2, 4096, 64 * devices),
    "decoding": lambda devices: _decoding(16, 8192, 16 * devices),
    "recommendation": lambda devices: _recommendation(min(2**24 * devices, 2**30), 128, 2**13 * devices),
}
"""Programs by name, as functions of the number of devices; the batch grows with the number of devices."""

SMALL_MODELS: Mapping[str, Callable[[], Program]] = {
    "transformer": lambda: _transformer(2, 256, 16, 32, 512),
    "transformer by scan": lambda: _scanned_transformer(3, 256, 16, 32),
    "LLaMA-like": lambda: _llama(2, 256, 4, 2, 512, 8, 32),
    "mixture of experts": lambda: _experts(2, 64, 256, 8, 8, 32),
    "vision transformer": lambda: _vision_transformer(2, 128, 16),
    "residual network": lambda: _residual_network(8),
    "U-Net": lambda: _u_net(8, 32),
    "graph network": lambda: _graph_network(2, 1024, 4096, 64),
    "LSTM": lambda: _recurrent(2, 128, 16, 16),
    "decoding": lambda: _decoding(2, 256, 8, 64),
    "recommendation": lambda: _recommendation(2**14, 32, 1024),
}
"""Programs of the same kinds, small enough to run on eight virtual devices."""

ONE_DEVICE_MODELS: Mapping[str, Callable[[], Program]] = {
    "transformer": lambda: _transformer(4, 2048, 8),
    "transformer by scan, bf16": lambda: _scanned_transformer(8, 4096, 4),
    "LLaMA-like, bf16": lambda: _llama(4, 4096, 32, 8, 14336, 2),
    "mixture of experts": lambda: _experts(2, 1024, 4096, 16, 32),
    "vision transformer": lambda: _vision_transformer(6, 1024, 64),
    "residual network": lambda: _residual_network(128),
    "U-Net": lambda: _u_net(16),
    "graph network": lambda: _graph_network(4, 2**17, 2**19, 512),
    "LSTM": lambda: _recurrent(2, 1024, 64, 64),
    "decoding, bf16": lambda: _decoding(8, 4096, 16),
    "recommendation": lambda: _recommendation(2**22, 128, 2**13),
}
"""Programs of the same kinds with the width of real models, that fit into 80 GB."""
