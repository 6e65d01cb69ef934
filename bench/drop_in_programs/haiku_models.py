"""Haiku models."""

from collections.abc import Callable, Mapping
from typing import Any

import haiku as hk
import jax
import jax.numpy as jnp
import optax
from jax.sharding import PartitionSpec as P

from drop_in_programs.steps import cross_entropy, next_token_loss, train_step, train_step_with_statistics
from placed import (
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

_KEY = jax.random.key(0)
_WIDTH, _VOCABULARY = 64, 256


def transformer(tokens: jax.Array) -> jax.Array:
    """The pre-norm transformer of Haiku's examples."""
    initial = hk.initializers.VarianceScaling(0.1)
    x = hk.Embed(_VOCABULARY, _WIDTH)(tokens)
    x = x + hk.get_parameter("positions", (*tokens.shape[1:], _WIDTH), init=hk.initializers.TruncatedNormal(0.02))
    mask = jnp.tril(jnp.ones((1, 1, tokens.shape[1], tokens.shape[1])))
    for _ in range(2):
        y = hk.LayerNorm(-1, True, True)(x)
        x = x + hk.MultiHeadAttention(4, 16, w_init=initial, model_size=_WIDTH)(y, y, y, mask)
        y = hk.LayerNorm(-1, True, True)(x)
        x = x + hk.Sequential([hk.Linear(4 * _WIDTH, name="up"), jax.nn.gelu, hk.Linear(_WIDTH, name="down")])(y)
    return hk.Linear(_VOCABULARY, name="head")(x)


def recurrent(tokens: jax.Array) -> jax.Array:
    core = hk.DeepRNN([hk.LSTM(_WIDTH), hk.LSTM(_WIDTH)])
    x = hk.Embed(_VOCABULARY, _WIDTH)(tokens)
    outputs, _ = hk.dynamic_unroll(core, x, core.initial_state(len(tokens)), time_major=False)
    return hk.BatchApply(hk.Linear(_VOCABULARY, name="head"))(outputs)


def _language(model: Callable[..., Any], rule: Rule | P, batch: P, mesh: Mapping[str, int] = LINE) -> Build:
    def build() -> Placed:
        made = hk.without_apply_rng(hk.transform(model))
        tokens, optimizer = integers(16, 32, below=_VOCABULARY), optax.adamw(1e-3)
        params = filled(jax.eval_shape(made.init, _KEY, tokens))
        step = train_step(optimizer, lambda params, tokens: next_token_loss(made.apply(params, tokens), tokens))
        return placed(step, (params, rule), (optimizer.init(params), rule), (tokens, batch), mesh=mesh)

    return build


def resnet(images: jax.Array) -> jax.Array:
    network = hk.nets.ResNet(
        (1, 1, 1, 1),
        10,
        bottleneck=False,
        channels_per_group=(64, 64, 128, 128),
        use_projection=(False, True, True, True),
    )
    return network(images, is_training=True)


def _images(rule: Rule | P, batch: P) -> Build:
    def build() -> Placed:
        made = hk.without_apply_rng(hk.transform_with_state(resnet))
        images, labels = normal(16, 32, 32, 3), integers(16, below=10)
        params, statistics = filled(jax.eval_shape(made.init, _KEY, images))
        optimizer = optax.sgd(0.1, momentum=0.9)

        def loss(params: Any, statistics: Any, images: jax.Array, labels: jax.Array) -> Any:
            logits, statistics = made.apply(params, statistics, images)
            return cross_entropy(logits, labels), statistics

        kept = (params, statistics, optimizer.init(params))
        step = train_step_with_statistics(optimizer, loss)
        return placed(step, *((tree, rule) for tree in kept), (images, batch), (labels, batch))

    return build


_MEGATRON = by_name(
    {
        "embed": P("model"),
        "(query|key|value|up|head)/w": P(None, "model"),
        "(query|key|value|up|head)/b": P("model"),
        "attention/linear/w|down/w": P("model"),
    }
)

PROGRAMS: dict[str, Build] = {
    "transformer, fully sharded": _language(transformer, fully_sharded(), P("x")),
    "transformer, tensor parallel": _language(transformer, _MEGATRON, P("data"), GRID),
    "stacked LSTM, fully sharded": _language(recurrent, fully_sharded(), P("x")),
    "ResNet, data parallel": _images(P(), P("x")),
    "ResNet, fully sharded": _images(fully_sharded(), P("x")),
}
