"""Equinox models: arrays are arguments and results, other leaves are closed over."""

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import lax
from jax.sharding import PartitionSpec as P

from drop_in_programs.steps import cross_entropy, train_step
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

_BATCH, _WIDTH, _MEMBERS = 64, 64, 8
_KEY = jax.random.key(0)


class Attention(eqx.Module):
    """A transformer block for one sequence, batched by vmap."""

    attention: eqx.nn.MultiheadAttention
    norm: eqx.nn.LayerNorm
    mlp: eqx.nn.MLP
    embed: eqx.nn.Embedding

    def __init__(self):
        a, b, c = jax.random.split(_KEY, 3)
        self.attention = eqx.nn.MultiheadAttention(4, _WIDTH, key=a)
        self.norm = eqx.nn.LayerNorm(_WIDTH)
        self.mlp = eqx.nn.MLP(_WIDTH, _WIDTH, 4 * _WIDTH, 1, key=b)
        self.embed = eqx.nn.Embedding(256, _WIDTH, key=c)

    def __call__(self, tokens: jax.Array) -> jax.Array:
        x = jax.vmap(self.embed)(tokens)
        y = jax.vmap(self.norm)(x)
        x = x + self.attention(y, y, y, jnp.tril(jnp.ones((len(x), len(x)), bool)))
        x = x + jax.vmap(self.mlp)(x)
        return x @ self.embed.weight.T


class Recurrent(eqx.Module):
    """A GRU over a sequence, with a classifier."""

    cell: eqx.nn.GRUCell
    head: eqx.nn.Linear

    def __init__(self):
        self.cell = eqx.nn.GRUCell(16, _WIDTH, key=_KEY)
        self.head = eqx.nn.Linear(_WIDTH, 10, key=_KEY)

    def __call__(self, series: jax.Array) -> jax.Array:
        state, _ = lax.scan(lambda state, x: (self.cell(x, state), None), jnp.zeros(_WIDTH), series)
        return self.head(state)


class Images(eqx.Module):
    """A convolutional network for one image."""

    layers: list[Any]

    def __init__(self):
        keys = jax.random.split(_KEY, 3)
        self.layers = [
            eqx.nn.Conv2d(3, 64, 3, padding=1, key=keys[0]),
            jax.nn.relu,
            eqx.nn.MaxPool2d(2, 2),
            eqx.nn.Conv2d(64, 64, 3, padding=1, key=keys[1]),
            jax.nn.relu,
            eqx.nn.AdaptiveAvgPool2d(1),
            jnp.ravel,
            eqx.nn.Linear(64, 10, key=keys[2]),
        ]

    def __call__(self, x: jax.Array) -> jax.Array:
        for layer in self.layers:
            x = layer(x)
        return x


def _trained(
    model: Callable[[], Any], inputs: Any, labels: Any, rule: Rule | P, batch: P, mesh: Mapping[str, int] = LINE
) -> Placed:
    params, static = eqx.partition(filled(eqx.filter_eval_shape(model)), eqx.is_inexact_array)
    optimizer = optax.adamw(1e-3)

    def loss(params: Any, inputs: jax.Array, labels: jax.Array) -> jax.Array:
        return cross_entropy(jax.vmap(eqx.combine(params, static))(inputs), labels)

    kept = ((params, rule), (optimizer.init(params), rule))
    return placed(train_step(optimizer, loss), *kept, (inputs, batch), (labels, batch), mesh=mesh)


def _perceptron(rule: Rule | P, batch: P, mesh: Mapping[str, int] = LINE) -> Build:
    return lambda: _trained(
        lambda: eqx.nn.MLP(_WIDTH, 10, 256, 2, key=_KEY),
        normal(_BATCH, _WIDTH),
        integers(_BATCH, below=10),
        rule,
        batch,
        mesh,
    )


def _sequences(rule: Rule | P, batch: P, mesh: Mapping[str, int] = LINE) -> Build:
    tokens = integers(16, 32, below=256)
    return lambda: _trained(Attention, tokens, tokens, rule, batch, mesh)


def ensemble() -> Placed:
    """An ensemble of eight models trained on the same batch, one per device."""
    models = eqx.filter_vmap(lambda key: eqx.nn.MLP(_WIDTH, 10, 128, 2, key=key))(jax.random.split(_KEY, _MEMBERS))
    params, static = eqx.partition(models, eqx.is_inexact_array)
    optimizer = optax.adam(1e-3)
    states = jax.vmap(optimizer.init)(params)

    def loss(params: Any, x: jax.Array, labels: jax.Array) -> jax.Array:
        return cross_entropy(jax.vmap(eqx.combine(params, static))(x), labels)

    step: Callable[..., Any] = jax.vmap(train_step(optimizer, loss), in_axes=(0, 0, None, None))
    batch = ((normal(_BATCH, _WIDTH), P()), (integers(_BATCH, below=10), P()))
    return placed(step, (params, P("x")), (states, _stacked), *batch)


def _stacked(path: str, shape: tuple[int, ...]) -> P:
    return P("x") if shape else P()


def filtered() -> Placed:
    """A train step with Equinox's filter_value_and_grad, and filter_checkpoint of a layer."""
    params, static = eqx.partition(eqx.nn.MLP(_WIDTH, 10, 256, 2, key=_KEY), eqx.is_array)

    def step(params: Any, x: jax.Array, labels: jax.Array) -> Any:
        model = eqx.combine(params, static)

        @eqx.filter_value_and_grad
        def loss(model: Any) -> jax.Array:
            return cross_entropy(jax.vmap(eqx.filter_checkpoint(model))(x), labels)

        value, gradients = loss(model)
        model = eqx.apply_updates(model, jax.tree.map(lambda g: -0.1 * g, gradients))
        return eqx.filter(model, eqx.is_array), value

    return placed(
        step, (params, fully_sharded()), (normal(_BATCH, _WIDTH), P("x")), (integers(_BATCH, below=10), P("x"))
    )


_MEGATRON = by_name(
    {
        "(query|key|value)_proj/weight": P("model"),
        "output_proj/weight": P(None, "model"),
        r"layers/0/(weight|bias)": P("model"),
        "layers/1/weight": P(None, "model"),
        "embed/weight": P("model"),
    }
)

PROGRAMS: dict[str, Build] = {
    "perceptron, fully sharded": _perceptron(fully_sharded(), P("x")),
    "perceptron, tensor parallel": _perceptron(_MEGATRON, P("data"), GRID),
    "attention mapped over the batch, fully sharded": _sequences(fully_sharded(), P("x")),
    "attention mapped over the batch, tensor parallel": _sequences(_MEGATRON, P("data"), GRID),
    "recurrent network mapped over the batch, fully sharded": lambda: _trained(
        Recurrent, normal(_BATCH, 12, 16), integers(_BATCH, below=10), fully_sharded(), P("x")
    ),
    "convolutions mapped over the batch, data parallel": lambda: _trained(
        Images, normal(16, 3, 16, 16), integers(16, below=10), P(), P("x")
    ),
    "ensemble, a model on each device": ensemble,
    "filtered transformations, fully sharded": filtered,
}
