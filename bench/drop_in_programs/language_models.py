"""Language models in plain jax with a scan over stacked layer weights."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jax.sharding import PartitionSpec as P

from drop_in_programs.steps import cross_entropy, next_token_loss, rotated, train_step
from placed import (
    CUBE,
    GRID,
    LINE,
    Build,
    Placed,
    Rule,
    by_name,
    fully_sharded,
    integers,
    normal,
    placed,
)

_WIDTH, _HEADS, _HIDDEN, _VOCABULARY, _LAYERS = 64, 4, 256, 256, 2
_BATCH, _LENGTH = 16, 32


def weights(layers: int = _LAYERS) -> dict[str, Any]:
    size = _WIDTH // _HEADS
    shapes = {
        "q": (layers, _WIDTH, _HEADS, size),
        "k": (layers, _WIDTH, _HEADS, size),
        "v": (layers, _WIDTH, _HEADS, size),
        "o": (layers, _HEADS, size, _WIDTH),
        "up": (layers, _WIDTH, _HIDDEN),
        "down": (layers, _HIDDEN, _WIDTH),
    }
    stacked = {name: normal(*shape, seed=i, scale=_WIDTH**-0.5) for i, (name, shape) in enumerate(shapes.items())}
    return {"embed": normal(_VOCABULARY, _WIDTH, seed=9, scale=0.1), "layers": stacked}


def normalized(x: jax.Array) -> jax.Array:
    return x * lax.rsqrt(jnp.mean(jnp.square(x), -1, keepdims=True) + 1e-6)


def layer(x: jax.Array, w: dict[str, jax.Array]) -> jax.Array:
    y = normalized(x)
    q, k, v = (jnp.einsum("bsw,whd->bshd", y, w[name]) for name in "qkv")
    attended = jax.nn.dot_product_attention(rotated(q), rotated(k), v, is_causal=True)
    x = x + jnp.einsum("bshd,hdw->bsw", attended, w["o"])
    return x + jax.nn.gelu(normalized(x) @ w["up"]) @ w["down"]


def logits_of(params: Any, tokens: jax.Array, remat: bool = True) -> jax.Array:
    body = jax.checkpoint(layer) if remat else layer
    x, _ = lax.scan(lambda x, w: (body(x, w), None), params["embed"][tokens], params["layers"])
    return normalized(x) @ params["embed"].T


def loss(params: Any, tokens: jax.Array) -> jax.Array:
    return next_token_loss(logits_of(params, tokens), tokens)


def mixed_precision_loss(params: Any, tokens: jax.Array) -> jax.Array:
    """Mixed precision: computation in bfloat16, parameters in float32."""
    narrow = jax.tree.map(lambda w: w.astype(jnp.bfloat16), params)
    return next_token_loss(logits_of(narrow, tokens).astype(jnp.float32), tokens)


def _trained(loss: Any, rule: Rule | P, batch: P, mesh: Mapping[str, int] = LINE, optimizer: Any = None) -> Build:
    def build() -> Placed:
        params, by = weights(), optimizer or optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))
        kept = ((params, rule), (by.init(params), rule))
        return placed(train_step(by, loss), *kept, (integers(_BATCH, _LENGTH, below=_VOCABULARY), batch), mesh=mesh)

    return build


def fine_tuning() -> Placed:
    """LoRA: only low-rank factors of the projections are trained."""
    params = weights()
    adapters = {
        name: {"a": normal(_LAYERS, _WIDTH, 8, scale=0.1), "b": jnp.zeros((_LAYERS, 8, _WIDTH))} for name in "qkv"
    }

    def loss_of(adapters: Any, params: Any, tokens: jax.Array) -> jax.Array:
        layers = dict(params["layers"])
        for name, ab in adapters.items():
            layers[name] = layers[name] + (ab["a"] @ ab["b"]).reshape(layers[name].shape)
        return loss({**params, "layers": layers}, tokens)

    optimizer = optax.adam(1e-3)
    kept = ((adapters, P()), (optimizer.init(adapters), P()), (params, _MEGATRON))
    tokens = integers(_BATCH, _LENGTH, below=_VOCABULARY)
    return placed(train_step(optimizer, loss_of), *kept, (tokens, P("data")), mesh=GRID)


def preferences() -> Placed:
    """Direct preference optimization with a frozen reference model."""
    params, reference, optimizer = weights(), weights(), optax.adam(1e-4)

    def likelihood(params: Any, tokens: jax.Array) -> jax.Array:
        chosen = jnp.take_along_axis(jax.nn.log_softmax(logits_of(params, tokens)[:, :-1]), tokens[:, 1:, None], -1)
        return chosen.sum((1, 2))

    def loss_of(params: Any, reference: Any, better: jax.Array, worse: jax.Array) -> jax.Array:
        gain = [likelihood(params, t) - likelihood(reference, t) for t in (better, worse)]
        return -jnp.mean(jax.nn.log_sigmoid(0.1 * (gain[0] - gain[1])))

    kept = ((params, fully_sharded()), (optimizer.init(params), fully_sharded()), (reference, fully_sharded()))
    pairs = [(integers(_BATCH, _LENGTH, below=_VOCABULARY, seed=seed), P("x")) for seed in range(2)]
    return placed(train_step(optimizer, loss_of), *kept, *pairs)


def distilled() -> Placed:
    """Distillation of a large model into a small one."""
    teacher, student, optimizer = weights(4), weights(1), optax.adam(1e-3)

    def loss_of(student: Any, teacher: Any, tokens: jax.Array) -> jax.Array:
        wanted = jax.nn.softmax(logits_of(teacher, tokens) / 2)
        return optax.softmax_cross_entropy(logits_of(student, tokens) / 2, wanted).mean()

    kept = ((student, P()), (optimizer.init(student), P()), (teacher, _MEGATRON))
    tokens = integers(_BATCH, _LENGTH, below=_VOCABULARY)
    return placed(train_step(optimizer, loss_of), *kept, (tokens, P("data")), mesh=GRID)


def decoded_token(params: Any, cache: Any, token: jax.Array, place: jax.Array) -> Any:
    """A decoding step: one token of each sequence, with an updated key-value cache."""

    def step(x: jax.Array, layer: Any) -> Any:
        w, keys, values = layer
        y = normalized(x)
        q, k, v = (jnp.einsum("bw,whd->bhd", y, w[name]) for name in "qkv")
        keys = lax.dynamic_update_slice_in_dim(keys, k[:, None], place, 1)
        values = lax.dynamic_update_slice_in_dim(values, v[:, None], place, 1)
        scores = jnp.einsum("bhd,bshd->bhs", q, keys) / np.sqrt(q.shape[-1])
        scores = jnp.where(jnp.arange(keys.shape[1]) <= place, scores, -1e9)
        x = x + jnp.einsum("bhs,bshd,hdw->bw", jax.nn.softmax(scores), values, w["o"])
        return x + jax.nn.gelu(normalized(x) @ w["up"]) @ w["down"], (keys, values)

    x, cache = lax.scan(step, params["embed"][token], (params["layers"], *cache))
    return jnp.argmax(normalized(x) @ params["embed"].T, -1), cache


def generated(params: Any, cache: Any, token: jax.Array) -> Any:
    """Autoregressive decoding of eight tokens."""

    def step(carry: Any, place: jax.Array) -> Any:
        token, cache = carry
        token, cache = decoded_token(params, cache, token, place)
        return (token, cache), token

    _, tokens = lax.scan(step, (token, cache), jnp.arange(8))
    return tokens.T


def _decoding(cache: P, rule: Rule, several: bool = False) -> Build:
    def build() -> Placed:
        shape = (_LAYERS, _BATCH, _LENGTH, _HEADS, _WIDTH // _HEADS)
        caches = (normal(*shape), normal(*shape, seed=1))
        arguments = ((weights(), rule), (caches, cache), (integers(_BATCH, below=_VOCABULARY), P("data")))
        if several:
            return placed(generated, *arguments, mesh=GRID)
        return placed(decoded_token, *arguments, (jnp.int32(7), P()), mesh=GRID)

    return build


def prefill(params: Any, tokens: jax.Array) -> jax.Array:
    """Prefill: the logits of the last token of each prompt."""
    return logits_of(params, tokens, remat=False)[:, -1]


def prompts(rule: Rule | P, batch: P, mesh: Mapping[str, int]) -> Build:
    return lambda: placed(prefill, (weights(), rule), (integers(_BATCH, _LENGTH, below=_VOCABULARY), batch), mesh=mesh)


def quantized() -> Placed:
    """Int8 weights with a scale per column."""

    def infer(w: jax.Array, scale: jax.Array, v: jax.Array, x: jax.Array) -> jax.Array:
        return jax.nn.gelu((x @ w.astype(jnp.float32)) * scale) @ v

    w = np.random.default_rng(0).integers(-127, 128, (_WIDTH, _HIDDEN)).astype(np.int8)
    scale = np.full(_HIDDEN, 0.01, np.float32)
    arguments = ((w, P(None, "model")), (scale, P("model")), (normal(_HIDDEN, _WIDTH), P("model")))
    return placed(infer, *arguments, (normal(_BATCH, _WIDTH), P("data")), mesh=GRID)


def vocabulary_on_one_axis() -> Placed:
    """An embedding and a projection with vocabulary, batch and weight columns sharded over the same axis."""
    arrays = (normal(_VOCABULARY, _WIDTH), normal(_WIDTH, _HIDDEN, seed=1), integers(64, 16, below=_VOCABULARY))
    specs = (P("x"), P(None, "x"), P("x"))
    return placed(lambda emb, w, tok: jnp.tanh(emb[tok] @ w), *zip(arrays, specs, strict=True))


def vocabulary_gradient() -> Placed:
    """The loss and gradients of a head with a sharded vocabulary."""

    def loss_of(emb: jax.Array, head: jax.Array, tokens: jax.Array) -> jax.Array:
        return cross_entropy(jnp.tanh(emb[tokens]) @ head, tokens)

    arrays = (normal(_VOCABULARY, _WIDTH), normal(_WIDTH, _VOCABULARY), integers(64, 16, below=_VOCABULARY))
    specs = (P("model"), P(None, "model"), P("data"))
    return placed(jax.value_and_grad(loss_of, (0, 1)), *zip(arrays, specs, strict=True), mesh=GRID)


_MEGATRON = by_name(
    {
        "embed": P("model"),
        r"/[qkv]$": P(None, None, "model"),
        "/o$": P(None, "model"),
        "/up$": P(None, None, "model"),
        "/down$": P(None, "model"),
    }
)
_BOTH = by_name(
    {
        "embed": P("z", ("x", "y")),
        r"/[qkv]$": P(None, ("x", "y"), "z"),
        "/o$": P(None, "z", None, ("x", "y")),
        "/up$": P(None, ("x", "y"), "z"),
        "/down$": P(None, "z", ("x", "y")),
    }
)
_CACHE = P(None, "data", None, "model")

PROGRAMS: dict[str, Build] = {
    "training, fully sharded": _trained(loss, fully_sharded(), P("x")),
    "training, data parallel": _trained(loss, P(), P("x")),
    "training, tensor parallel": _trained(loss, _MEGATRON, P("data"), GRID),
    "training, fully sharded and tensor parallel": _trained(loss, _BOTH, P(("x", "y")), CUBE),
    "training, sequence split": _trained(loss, P(), P("data", "model"), GRID),
    "training in bfloat16, fully sharded": _trained(mixed_precision_loss, fully_sharded(), P("x")),
    "training with adafactor, tensor parallel": _trained(loss, _MEGATRON, P("data"), GRID, optax.adafactor(1e-3)),
    "layers split as stages, data parallel": _trained(loss, by_name({"layers": P("model")}), P("data"), GRID),
    "low-rank fine tuning, tensor parallel": fine_tuning,
    "direct preferences, fully sharded": preferences,
    "distillation, tensor parallel teacher": distilled,
    "prompts, tensor parallel": prompts(_MEGATRON, P("data"), GRID),
    "prompts, sequence split": prompts(P(), P(None, "x"), LINE),
    "decoding, heads split": _decoding(_CACHE, _MEGATRON),
    "decoding, sequence split": _decoding(P(None, "data", "model"), by_name({})),
    "decoding in a loop, heads split": _decoding(_CACHE, _MEGATRON, several=True),
    "weights of eight bits, tensor parallel": quantized,
    "vocabulary, batch and weights over one axis": vocabulary_on_one_axis,
    "gradient with a vocabulary that is split": vocabulary_gradient,
}
