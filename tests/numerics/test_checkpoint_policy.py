"""The printed policy of a program under a memory limit recomputes under `jax.jit` what sdy recomputes."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import sdy
from samples import large, sample
from sdy.passes.jax.compiler_context import CPU_OPTIONS
from sdy.passes.jax.memory_limit import peak_bytes_of

Tree = Any
Loss = Callable[..., jax.Array]
WIDTH, BATCH, LAYERS = 64, 1024, 4


def dense(x: jax.Array, w: Tree) -> jax.Array:
    return x + jnp.tanh(x @ w["up"]) @ w["down"]


def activated(x: jax.Array, w: Tree) -> jax.Array:
    """A layer with activations that are functions of `jax.jit`, with rules of their own for derivatives."""
    return x + jax.nn.relu(jax.nn.silu(x @ w["up"])) @ w["down"]


def named(x: jax.Array, w: Tree) -> jax.Array:
    return checkpoint_name(x + jnp.tanh(x @ w["up"]) @ w["down"], "block")


def loss_of(layer: Loss) -> Loss:
    def loss(params: Tree, x: jax.Array) -> jax.Array:
        for w in params:
            x = layer(x, w)
        return jnp.mean(jnp.square(x))

    return loss


def scan_of(layer: Loss) -> Loss:
    def loss(params: Tree, x: jax.Array) -> jax.Array:
        stacked = {name: jnp.stack([w[name] for w in params]) for name in ("up", "down")}
        return jnp.mean(jnp.square(lax.scan(lambda x, w: (layer(x, w), None), x, stacked)[0]))

    return loss


CHECKPOINTED: dict[str, Callable[[Callable[[Loss], Loss]], Loss]] = {
    "dense": lambda wrap: wrap(loss_of(dense)),
    "layers": lambda wrap: loss_of(wrap(dense)),
    "activated": lambda wrap: wrap(loss_of(activated)),
    "scanned": lambda wrap: scan_of(wrap(dense)),
}
"""Losses with a function that is checkpointed: the loss itself, or its layers."""


def step_of(loss: Loss) -> Callable[..., Any]:
    def step(params: Tree, x: jax.Array) -> Tree:
        return jax.tree.map(lambda w, g: w - 0.1 * g, params, jax.grad(loss)(params, x))

    return step


def arguments() -> tuple[Tree, jax.Array]:
    mesh = jax.make_mesh((2,), ("data",), (jax.sharding.AxisType.Auto,), devices=jax.devices()[:2])
    values = np.random.default_rng(0)

    def some(spec: P, *shape: int) -> jax.Array:
        array = jnp.asarray(values.normal(size=shape) / 8, jnp.float32)
        return jax.device_put(array, NamedSharding(mesh, spec))

    params = [{"up": some(P(), WIDTH, 4 * WIDTH), "down": some(P(), 4 * WIDTH, WIDTH)} for _ in range(LAYERS)]
    return params, some(P("data"), BATCH, WIDTH)


def bytes_of(step: Any) -> int:
    needed = peak_bytes_of(step.lower(*arguments()).compile())
    assert needed is not None
    return needed


def file_for(loss: Loss, limit: int) -> tuple[str, int]:
    """Return the file for a step under a memory limit, and the memory of the compiled step."""
    train = sdy.jit(step_of(loss), memory=limit, compiler_options=CPU_OPTIONS)
    return sdy.specs(train.lower(*arguments())).checkpoint_policy(), bytes_of(train)


@pytest.mark.parametrize("program", sample(CHECKPOINTED, one_in=2))
def test_it_needs_about_the_memory_and_computes_the_same(program: str) -> None:
    loss = CHECKPOINTED[program](lambda function: function)
    free = bytes_of(sdy.jit(step_of(loss), compiler_options=CPU_OPTIONS))
    text, ours = file_for(loss, int(0.7 * free))
    module: dict[str, Any] = {}
    exec(text, module)
    theirs = jax.jit(step_of(CHECKPOINTED[program](module["checkpointed"])), compiler_options=CPU_OPTIONS)
    assert ours < 0.8 * free
    assert bytes_of(theirs) <= 1.1 * ours
    expected = jax.jit(step_of(loss))(*arguments())
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), theirs(*arguments()), expected)


@large
def test_names_of_the_program_are_a_policy_of_their_own() -> None:
    loss = loss_of(named)
    module = sdy.from_jax(step_of(loss), *arguments())
    ample = sdy.auto(sdy.from_jax(step_of(loss), *arguments()), mesh={"data": 2}, hardware="cpu-8")
    plan = sdy.auto(module, mesh={"data": 2}, hardware="cpu-8", memory=int(0.6 * ample.cost.memory))
    text = plan.specs().checkpoint_policy()
    assert plan.recomputation is not None
    assert all(each.source.startswith("test_checkpoint_policy.py:") for each in plan.recomputation.values)
    assert sum(each.seconds for each in plan.recomputation.values) > 0
    assert 'policy=jax.checkpoint_policies.save_only_these_names("block")' in text.replace("'", '"')


def test_a_program_that_fits_has_none() -> None:
    with pytest.raises(ValueError, match="'step' recomputes nothing"):
        sdy.specs(sdy.jit(step_of(loss_of(dense))).lower(*arguments())).checkpoint_policy()
