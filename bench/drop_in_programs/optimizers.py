"""Train steps with the optimizers of optax and their sharded states."""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

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
    fully_sharded,
    integers,
    normal,
    placed,
)

_WIDTHS = (64, 256, 256, 64)
_BATCH = 64
_CLASSES = _WIDTHS[-1]


def perceptron() -> dict[str, Any]:
    sizes = pairwise(_WIDTHS)
    return {
        f"layer{i}": {"w": normal(n, m, seed=i, scale=n**-0.5), "b": jnp.zeros(m)} for i, (n, m) in enumerate(sizes)
    }


def classify(params: dict[str, Any], x: jax.Array) -> jax.Array:
    for layer in params.values():
        x = jax.nn.gelu(x @ layer["w"] + layer["b"])
    return x


def loss(params: dict[str, Any], x: jax.Array, labels: jax.Array) -> jax.Array:
    return cross_entropy(classify(params, x), labels)


def accumulating_step(optimizer: Any) -> Callable[..., Any]:
    """Gradient accumulation over four microbatches in a loop."""

    def step(params: Any, state: Any, x: jax.Array, labels: jax.Array) -> Any:
        def add(total: Any, part: Any) -> Any:
            return jax.tree.map(jnp.add, total, jax.grad(loss)(params, *part)), None

        parts = (x.reshape(4, -1, x.shape[-1]), labels.reshape(4, -1))
        gradients, _ = lax.scan(add, jax.tree.map(jnp.zeros_like, params), parts)
        updates, state = optimizer.update(jax.tree.map(lambda g: g / 4, gradients), state, params)
        return optax.apply_updates(params, updates), state

    return step


def sharpness_aware_step(optimizer: Any) -> Callable[..., Any]:
    """Sharpness-aware minimization: the gradient at a perturbed point."""

    def step(params: Any, state: Any, *batch: Any) -> Any:
        uphill = jax.grad(loss)(params, *batch)
        scale = 0.05 / (optax.global_norm(uphill) + 1e-6)
        moved = jax.tree.map(lambda p, g: p + scale * g, params, uphill)
        updates, state = optimizer.update(jax.grad(loss)(moved, *batch), state, params)
        return optax.apply_updates(params, updates), state

    return step


def averaging_step(optimizer: Any) -> Callable[..., Any]:
    """A step that also updates a moving average of the parameters."""
    average = optax.ema(0.999)
    step = train_step(optimizer, loss)

    def averaged(params: Any, state: Any, averages: Any, *batch: Any) -> Any:
        params, state, value = step(params, state, *batch)
        _, averages = average.update(params, averages)
        return params, state, averages, value

    return averaged


def trained(
    step: Callable[..., Any],
    optimizer: Any,
    rule: Rule | P,
    batch: P,
    mesh: Mapping[str, int] = LINE,
    others: Callable[[Any], tuple[Any, ...]] = lambda params: (),
) -> Placed:
    """Place a step on parameters, optimizer state and `others`, all sharded by `rule`, and a batch."""
    params = perceptron()
    kept = (params, optimizer.init(params), *others(params))
    x, labels = normal(_BATCH, _WIDTHS[0]), integers(_BATCH, below=_CLASSES)
    return placed(step, *((tree, rule) for tree in kept), (x, batch), (labels, batch), mesh=mesh)


_MEGATRON = by_name(
    {"layer0/w": P(None, "model"), "layer0/b": P("model"), "layer1/w": P("model"), "layer2/w": P(None, "model")}
)
_BOTH = by_name(
    {
        "layer0/w": P("data", "model"),
        "layer0/b": P("model"),
        "layer1/w": P("model", "data"),
        "layer2/w": P("data", "model"),
    }
)


def _simple(optimizer: Any, rule: Rule | P, batch: P, mesh: Mapping[str, int] = LINE, **options: Any) -> Build:
    return lambda: trained(train_step(optimizer, loss, **options), optimizer, rule, batch, mesh)


def _accumulating(rule: Rule, batch: P, mesh: Mapping[str, int] = LINE) -> Build:
    optimizer = optax.adamw(1e-3)
    return partial(trained, accumulating_step(optimizer), optimizer, rule, batch, mesh)


_CLIPPED = optax.chain(
    optax.clip_by_global_norm(1.0), optax.adamw(optax.warmup_cosine_decay_schedule(0.0, 1e-3, 100, 1000))
)
_ADAM = optax.adam(1e-3)
_SPLIT = P("x")

PROGRAMS: dict[str, Build] = {
    "sgd with momentum, data parallel": _simple(optax.sgd(0.1, momentum=0.9, nesterov=True), P(), _SPLIT),
    "adam, data parallel": _simple(_ADAM, P(), _SPLIT),
    "adam, fully sharded": _simple(_ADAM, fully_sharded(), _SPLIT),
    "adam, tensor parallel": _simple(_ADAM, _MEGATRON, P("data"), GRID),
    "adam, fully sharded and tensor parallel": _simple(_ADAM, _BOTH, P("data"), GRID),
    "adamw, clipped, with a schedule, fully sharded": _simple(_CLIPPED, fully_sharded(), _SPLIT),
    "adafactor, fully sharded": _simple(optax.adafactor(1e-2, min_dim_size_to_factor=32), fully_sharded(), _SPLIT),
    "lion, fully sharded": _simple(optax.lion(1e-4), fully_sharded(), _SPLIT),
    "lamb, fully sharded": _simple(optax.lamb(1e-3), fully_sharded(), _SPLIT),
    "rmsprop, tensor parallel": _simple(optax.rmsprop(1e-3), _MEGATRON, P("data"), GRID),
    "muon, fully sharded": _simple(optax.contrib.muon(1e-3), fully_sharded(), _SPLIT),
    "L-BFGS with a line search, fully sharded": _simple(
        optax.lbfgs(memory_size=4), fully_sharded(), _SPLIT, has_value=True
    ),
    "adamw, every fourth step, fully sharded": _simple(optax.MultiSteps(optax.adamw(1e-3), 4), fully_sharded(), _SPLIT),
    "gradients accumulated in a loop, fully sharded": _accumulating(fully_sharded(), _SPLIT),
    "gradients accumulated in a loop, tensor parallel": _accumulating(_MEGATRON, P("data"), GRID),
    "sharpness aware, fully sharded": lambda: trained(sharpness_aware_step(_ADAM), _ADAM, fully_sharded(), _SPLIT),
    "moving average of parameters, state sharded": lambda: trained(
        averaging_step(_ADAM),
        _ADAM,
        by_name({"mu|nu|ema": P("x")}),
        _SPLIT,
        others=lambda params: (optax.ema(0.999).init(params),),
    ),
}
