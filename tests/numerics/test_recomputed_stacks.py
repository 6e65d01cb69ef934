"""The residuals that a scan over layers stacks are recomputed under a memory limit, with equal numbers."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P
from xdsl.dialects.builtin import ModuleOp

import sdy
from sdy.passes.layouts import partitioned_copy, partitioner_for
from sdy.passes.spmd.costs.footprint import peak_bytes
from sdy.passes.spmd.remat.recomputed import product_operations

Tree = Any
_WIDTH, _BATCH, _LAYERS = 8, 64, 4


def dense(x: jax.Array, w: Tree) -> jax.Array:
    y = x * lax.rsqrt(jnp.mean(jnp.square(x), -1, keepdims=True) + 1e-6)
    return x + jnp.tanh(y @ w["up"]) @ w["down"]


def over(layer: Callable[..., jax.Array], **options: Any) -> Callable[[Tree, jax.Array], jax.Array]:
    """Return a scan of a layer over stacked weights."""

    def scanned(params: Tree, x: jax.Array) -> jax.Array:
        return jnp.mean(jnp.square(lax.scan(lambda x, w: (layer(x, w), None), x, params, **options)[0]))

    return scanned


def numbered(params: Tree, x: jax.Array) -> jax.Array:
    """Scan layers that use the number of their iteration."""

    def layer(x: jax.Array, each: tuple[Tree, jax.Array]) -> tuple[jax.Array, None]:
        w, number = each
        return x + jnp.sin((x * number) @ w["up"]) @ w["down"], None

    return jnp.mean(jnp.square(lax.scan(layer, x, (params, jnp.arange(_LAYERS, dtype=jnp.float32)))[0]))


def returning(params: Tree, x: jax.Array) -> jax.Array:
    """Scan layers whose activations are results too."""

    def layer(x: jax.Array, w: Tree) -> tuple[jax.Array, jax.Array]:
        y = jnp.tanh(x @ w["up"])
        return x + y @ w["down"], y

    x, ys = lax.scan(layer, x, params)
    return jnp.mean(jnp.square(x)) + jnp.mean(ys)


def in_microbatches(params: Tree, x: jax.Array) -> jax.Array:
    """Accumulate the losses of microbatches, each a scan over layers."""
    losses = lax.map(lambda part: over(dense)(params, part), x.reshape(2, -1, _WIDTH))
    return losses.mean()


def in_a_loop(params: Tree, x: jax.Array) -> jax.Array:
    """Scan layers, each with a loop of its own."""

    def layer(x: jax.Array, w: Tree) -> jax.Array:
        y = lax.fori_loop(0, 2, lambda _, y: jnp.sin(y), x @ w["up"])
        return x + y @ w["down"]

    return over(layer)(params, x)


def in_shards(params: Tree, x: jax.Array) -> jax.Array:
    """Scan layers in a manual region along one axis, with a sum along it in each layer."""

    def layer(x: jax.Array, w: Tree) -> tuple[jax.Array, None]:
        y = jnp.tanh(x @ w["up"])
        return x + lax.psum(y @ w["down"], "y"), None

    specs = {"up": P(None, None, "y"), "down": P(None, "y")}
    whole = jax.shard_map(
        lambda params, x: lax.scan(layer, x, params)[0], in_specs=(specs, P()), out_specs=P(), axis_names={"y"}
    )
    return jnp.mean(jnp.square(whole(params, x)))


LOSSES = {
    "dense": over(dense),
    "reversed": over(dense, reverse=True),
    "numbered": numbered,
    "returning": returning,
    "in microbatches": in_microbatches,
    "in a loop": in_a_loop,
    "in shards": in_shards,
}


def propagated(loss: Callable[[Tree, jax.Array], jax.Array]) -> tuple[ModuleOp, list[Any]]:
    """Return the propagated gradient of a loss, and its arguments."""
    mesh = jax.make_mesh((2, 2), ("x", "y"), (jax.sharding.AxisType.Auto,) * 2, devices=jax.devices()[:4])
    values = np.random.default_rng(0)
    params = {
        "down": values.normal(size=(_LAYERS, 4 * _WIDTH, _WIDTH)).astype(np.float32) / 4,
        "up": values.normal(size=(_LAYERS, _WIDTH, 4 * _WIDTH)).astype(np.float32) / 4,
    }
    x = values.normal(size=(_BATCH, _WIDTH)).astype(np.float32)
    step = sdy.jit(jax.value_and_grad(loss), mesh=mesh, in_shardings=(None, P("x")))
    with jax.set_mesh(mesh):
        return step.lower(params, x).module, [*jax.tree.leaves(params), x]


@pytest.mark.covering
@pytest.mark.parametrize("name", LOSSES)
def test_stacked_residuals_are_recomputed_with_equal_numbers(name: str) -> None:
    module, arguments = propagated(LOSSES[name])
    free = partitioned_copy(module)
    limited = partitioner_for(str(int(peak_bytes(free) * 0.6)), warns=False)(module)
    limited.verify()
    assert peak_bytes(limited) <= 0.7 * peak_bytes(free)
    all_, again = product_operations(limited)
    assert all_ - again == product_operations(free)[0]
    for found, expected in zip(sdy.interpret(limited, *arguments), sdy.interpret(free, *arguments), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
