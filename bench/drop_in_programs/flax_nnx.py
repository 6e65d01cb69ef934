"""Flax NNX models, split and merged within the step, as its performance guide recommends."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import PartitionSpec as P

from drop_in_programs.steps import cross_entropy, next_token_loss, rotated, train_step_with_statistics
from placed import (
    CUBE,
    GRID,
    LINE,
    Build,
    Placed,
    Rule,
    by_name,
    filled,
    fully_sharded,
    integers,
    normal,
    placed,
)

_WIDTH, _HEADS, _VOCABULARY = 64, 4, 256
_BATCH, _LENGTH = 16, 32


class Attention(nnx.Module):
    """Causal grouped-query attention with rotary embeddings."""

    def __init__(self, rngs: nnx.Rngs):
        size = _WIDTH // _HEADS
        self.q = nnx.LinearGeneral(_WIDTH, (_HEADS, size), use_bias=False, rngs=rngs)
        self.kv = nnx.LinearGeneral(_WIDTH, (2, _HEADS // 2, size), use_bias=False, rngs=rngs)
        self.out = nnx.LinearGeneral((_HEADS, size), _WIDTH, axis=(-2, -1), use_bias=False, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        kv = self.kv(x)
        return self.out(
            jax.nn.dot_product_attention(
                rotated(self.q(x)), rotated(kv[..., 0, :, :]), kv[..., 1, :, :], is_causal=True
            )
        )


class Block(nnx.Module):
    """A transformer block with a gated MLP."""

    def __init__(self, rngs: nnx.Rngs):
        self.before, self.between = nnx.RMSNorm(_WIDTH, rngs=rngs), nnx.RMSNorm(_WIDTH, rngs=rngs)
        self.attention = Attention(rngs)
        self.gate, self.up = (nnx.Linear(_WIDTH, 4 * _WIDTH, use_bias=False, rngs=rngs) for _ in range(2))
        self.down = nnx.Linear(4 * _WIDTH, _WIDTH, use_bias=False, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        x = x + self.attention(self.before(x))
        y = self.between(x)
        return x + self.down(jax.nn.silu(self.gate(y)) * self.up(y))


class Decoder(nnx.Module):
    """A Llama-like model: RMS norm, rotary embeddings, grouped queries, gated MLP."""

    def __init__(self, rngs: nnx.Rngs, remat: bool = False):
        self.embed = nnx.Embed(_VOCABULARY, _WIDTH, rngs=rngs)
        self.blocks = nnx.List([Block(rngs) for _ in range(2)])
        self.norm = nnx.RMSNorm(_WIDTH, rngs=rngs)
        self.remat = remat

    def __call__(self, tokens: jax.Array) -> jax.Array:
        x = self.embed(tokens)
        for block in self.blocks:
            x = nnx.remat(lambda block, x: block(x))(block, x) if self.remat else block(x)
        return self.embed.attend(self.norm(x))


class ScannedDecoder(nnx.Module):
    """A Llama-like model with a scan over stacked layers."""

    def __init__(self, rngs: nnx.Rngs):
        self.embed = nnx.Embed(_VOCABULARY, _WIDTH, rngs=rngs)
        self.blocks = nnx.vmap(Block, in_axes=0, out_axes=0)(rngs.fork(split=4))

    def __call__(self, tokens: jax.Array) -> jax.Array:
        layer = nnx.scan(lambda x, block: block(x), in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
        return self.embed.attend(layer(self.embed(tokens), self.blocks))


class Encoder(nnx.Module):
    """A block with NNX's attention, layer norm and dropout."""

    def __init__(self, rngs: nnx.Rngs):
        self.embed = nnx.Embed(_VOCABULARY, _WIDTH, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(_HEADS, _WIDTH, decode=False, rngs=rngs)
        self.norms = nnx.List([nnx.LayerNorm(_WIDTH, rngs=rngs) for _ in range(2)])
        self.up, self.down = nnx.Linear(_WIDTH, 4 * _WIDTH, rngs=rngs), nnx.Linear(4 * _WIDTH, _WIDTH, rngs=rngs)
        self.dropout = nnx.Dropout(0.1, rngs=rngs)
        self.head = nnx.Linear(_WIDTH, _VOCABULARY, rngs=rngs)

    def __call__(self, tokens: jax.Array) -> jax.Array:
        x = self.embed(tokens)
        x = x + self.dropout(self.attention(self.norms[0](x)))
        x = x + self.dropout(self.down(nnx.gelu(self.up(self.norms[1](x)))))
        return self.head(x)


class VisionTransformer(nnx.Module):
    """A vision transformer: patches of 4 x 4 pixels, a class token, learned positions."""

    def __init__(self, rngs: nnx.Rngs):
        self.patches = nnx.Conv(3, _WIDTH, (4, 4), strides=(4, 4), padding="VALID", rngs=rngs)
        self.token = nnx.Param(jnp.zeros((1, 1, _WIDTH)))
        self.positions = nnx.Param(0.02 * normal(1, 17, _WIDTH))
        self.norm = nnx.LayerNorm(_WIDTH, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(_HEADS, _WIDTH, decode=False, rngs=rngs)
        self.up, self.down = nnx.Linear(_WIDTH, 4 * _WIDTH, rngs=rngs), nnx.Linear(4 * _WIDTH, _WIDTH, rngs=rngs)
        self.head = nnx.Linear(_WIDTH, 10, rngs=rngs)

    def __call__(self, images: jax.Array) -> jax.Array:
        x = self.patches(images).reshape(len(images), -1, _WIDTH)
        token = jnp.broadcast_to(self.token[...], (len(images), 1, _WIDTH))
        x = jnp.concatenate([token, x], 1) + self.positions[...]
        x = x + self.attention(self.norm(x))
        x = x + self.down(nnx.gelu(self.up(x)))
        return self.head(x[:, 0])


class Convolutional(nnx.Module):
    """A network with batch norm and dropout, whose statistics and random keys are part of the state."""

    def __init__(self, rngs: nnx.Rngs):
        self.first, self.second = (nnx.Conv(n, 64, (3, 3), rngs=rngs) for n in (3, 64))
        self.norm = nnx.BatchNorm(64, rngs=rngs)
        self.dropout = nnx.Dropout(0.25, rngs=rngs)
        self.dense, self.head = nnx.Linear(64 * 16, 128, rngs=rngs), nnx.Linear(128, 10, rngs=rngs)

    def __call__(self, images: jax.Array) -> jax.Array:
        x = nnx.avg_pool(nnx.relu(self.norm(self.first(images))), (2, 2), (2, 2))
        x = nnx.avg_pool(nnx.relu(self.second(x)), (2, 2), (2, 2))
        return self.head(self.dropout(nnx.relu(self.dense(x.reshape(len(x), -1)))))


class Tagger(nnx.Module):
    """A bidirectional recurrent tagger."""

    def __init__(self, rngs: nnx.Rngs):
        self.embed = nnx.Embed(_VOCABULARY, _WIDTH, rngs=rngs)
        self.layers = nnx.Bidirectional(
            nnx.RNN(nnx.LSTMCell(_WIDTH, _WIDTH, rngs=rngs)), nnx.RNN(nnx.GRUCell(_WIDTH, _WIDTH, rngs=rngs)), rngs=rngs
        )
        self.head = nnx.Linear(2 * _WIDTH, _VOCABULARY, rngs=rngs)

    def __call__(self, tokens: jax.Array) -> jax.Array:
        return self.head(self.layers(self.embed(tokens)))


class Adapted(nnx.Module):
    """LoRA: frozen layers with low-rank updates."""

    def __init__(self, rngs: nnx.Rngs):
        self.up = nnx.LoRALinear(_WIDTH, 4 * _WIDTH, lora_rank=8, rngs=rngs)
        self.down = nnx.LoRALinear(4 * _WIDTH, 10, lora_rank=8, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.down(nnx.gelu(self.up(x)))


def _trained(
    model: Callable[[], nnx.Module],
    inputs: Any,
    labels: Any,
    rule: Rule | P,
    batch: P,
    mesh: Mapping[str, int] = LINE,
    learned: Any = nnx.Param,
    loss: Callable[[jax.Array, jax.Array], jax.Array] = cross_entropy,
) -> Placed:
    """Return a step that trains the parameters of one kind; all other state is replicated, or sharded alike."""
    graph, params, rest = nnx.split(nnx.eval_shape(model), learned, ...)
    params, rest = filled((params, rest))
    optimizer = optax.adamw(1e-3)

    def loss_of(params: Any, rest: Any, inputs: jax.Array, labels: jax.Array) -> Any:
        model = nnx.merge(graph, params, rest, copy=True)
        return loss(model(inputs), labels), nnx.state(model, nnx.Not(learned))

    step = train_step_with_statistics(optimizer, loss_of)
    kept = ((params, rule), (rest, rule), (optimizer.init(params), rule))
    return placed(step, *kept, (inputs, batch), (labels, batch), mesh=mesh)


def _language(
    kind: Callable[..., nnx.Module], rule: Rule | P, batch: P, mesh: Mapping[str, int] = LINE, **options: Any
):
    def build() -> Placed:
        tokens = integers(_BATCH, _LENGTH, below=_VOCABULARY)
        return _trained(lambda: kind(nnx.Rngs(0), **options), tokens, tokens, rule, batch, mesh, loss=next_token_loss)

    return build


def _images(kind: Callable[..., nnx.Module], rule: Rule | P, batch: P, mesh: Mapping[str, int] = LINE) -> Build:
    return lambda: _trained(
        lambda: kind(nnx.Rngs(0)), normal(_BATCH, 16, 16, 3), integers(_BATCH, below=10), rule, batch, mesh
    )


def adapters() -> Placed:
    x, labels = normal(_BATCH, _WIDTH), integers(_BATCH, below=10)
    rule = by_name({"lora": P(), "up.*kernel": P(None, "model"), "down.*kernel": P("model")})
    return _trained(lambda: Adapted(nnx.Rngs(0)), x, labels, rule, P("data"), GRID, learned=nnx.LoRAParam)


def optimizer_inside() -> Placed:
    """A step on the model and NNX's optimizer as one tree."""

    def make() -> Any:
        model = Decoder(nnx.Rngs(0))
        return model, nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)

    graph, state = nnx.split(nnx.eval_shape(make))
    state = filled(state)

    def step(state: Any, tokens: jax.Array) -> Any:
        model, optimizer = nnx.merge(graph, state)
        value, gradients = nnx.value_and_grad(lambda model: next_token_loss(model(tokens), tokens))(model)
        optimizer.update(model, gradients)
        return nnx.state((model, optimizer)), value

    return placed(step, (state, fully_sharded()), (integers(_BATCH, _LENGTH, below=_VOCABULARY), P("x")))


MEGATRON: Mapping[str, P] = {
    "embed": P("model"),
    r"\bq/": P(None, "model"),
    r"\bkv/": P(None, None, "model"),
    r"\bout/": P("model"),
    r"gate|up": P(None, "model"),
    "down": P("model"),
}
_BOTH: Mapping[str, P] = {
    "embed": P("z", ("x", "y")),
    r"\bq/": P(("x", "y"), "z"),
    r"\bkv/": P(("x", "y"), None, "z"),
    r"\bout/": P("z", None, ("x", "y")),
    r"gate|up": P(("x", "y"), "z"),
    "down": P("z", ("x", "y")),
}

PROGRAMS: dict[str, Build] = {
    "decoder, fully sharded": _language(Decoder, fully_sharded(), P("x")),
    "decoder, tensor parallel": _language(Decoder, by_name(MEGATRON), P("data"), GRID),
    "decoder, fully sharded and tensor parallel": _language(Decoder, by_name(_BOTH), P(("x", "y")), CUBE),
    "decoder, sequence split": _language(Decoder, P(), P("data", "model"), GRID),
    "decoder, layers computed again, fully sharded": _language(Decoder, fully_sharded(), P("x"), remat=True),
    "decoder, layers in a loop, fully sharded": _language(ScannedDecoder, fully_sharded(), P("x")),
    "decoder, the optimizer in the tree, fully sharded": optimizer_inside,
    "encoder with dropout, fully sharded": _language(Encoder, fully_sharded(), P("x")),
    "vision transformer, fully sharded": _images(VisionTransformer, fully_sharded(), P("x")),
    "vision transformer, data parallel": _images(VisionTransformer, P(), P("x")),
    "convolutions with batch norm, fully sharded": _images(Convolutional, fully_sharded(), P("x")),
    "convolutions with batch norm, data parallel": _images(Convolutional, P(), P("x")),
    "recurrent network in both directions, fully sharded": _language(Tagger, fully_sharded(), P("x")),
    "low-rank adapters, tensor parallel": adapters,
}
