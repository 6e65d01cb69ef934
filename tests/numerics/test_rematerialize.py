"""Programs with a memory limit compute the same numbers in less memory."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import sdy
from sdy.passes.account.partitioned_program import partitioned_program
from sdy.passes.jax.compiler_context import CPU_OPTIONS
from sdy.passes.jax.memory_limit import peak_bytes_of
from sdy.passes.spmd.remat.recomputed import product_operations

Tree = Any
_WIDTH, _BATCH, _LAYERS = 32, 512, 4


def dense(x: jax.Array, w: Tree) -> jax.Array:
    return x + jnp.tanh(x @ w["up"]) @ w["down"]


def scaled(x: jax.Array, w: Tree) -> jax.Array:
    """A layer with a normalization, a view and a reduction along the split dimension."""
    y = x * lax.rsqrt(jnp.mean(jnp.square(x), -1, keepdims=True) + 1e-6)
    y = jax.nn.gelu(y.reshape(-1, 2, _WIDTH // 2).reshape(-1, _WIDTH) @ w["up"])
    return x + (y - y.mean(0)) @ w["down"]


def dropped_out(x: jax.Array, w: Tree) -> jax.Array:
    """A layer with random numbers, which are drawn again from the same state."""
    y = jax.nn.relu(x @ w["up"])
    return x + jnp.where(jax.random.bernoulli(jax.random.key(3), 0.5, y.shape), y, 0) @ w["down"]


def scanned(x: jax.Array, w: Tree) -> jax.Array:
    """A layer with a loop inside."""
    y = lax.fori_loop(0, 2, lambda _, y: jnp.sin(y), x @ w["up"])
    return x + y @ w["down"]


def step_of(layer: Callable[..., jax.Array]) -> Callable[..., Any]:
    def loss(params: Tree, x: jax.Array) -> jax.Array:
        for w in params:
            x = layer(x, w)
        return jnp.mean(jnp.square(x))

    def step(params: Tree, x: jax.Array) -> Any:
        value, gradients = jax.value_and_grad(loss)(params, x)
        return jax.tree.map(lambda w, g: w - 0.1 * g, params, gradients), value

    return step


def arguments(specs: tuple[P, P, P], layers: int = _LAYERS) -> tuple[Tree, jax.Array]:
    mesh = jax.make_mesh((2, 2), ("data", "model"), (jax.sharding.AxisType.Auto,) * 2, devices=jax.devices()[:4])
    up, down, batch = (NamedSharding(mesh, spec) for spec in specs)
    values = np.random.default_rng(0)

    def some(sharding: NamedSharding, *shape: int) -> jax.Array:
        return jax.device_put(values.normal(size=shape).astype(np.float32) / 8, sharding)

    params = [{"up": some(up, _WIDTH, 4 * _WIDTH), "down": some(down, 4 * _WIDTH, _WIDTH)} for _ in range(layers)]
    return params, some(batch, _BATCH, _WIDTH)


LAYOUTS = {
    "data": (P(), P(), P("data")),
    "model": (P(None, "model"), P("model"), P("data")),
    "fully sharded": (P("data"), P("data"), P(("data", "model"))),
}


@pytest.mark.covering
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("layer", [dense, scaled, dropped_out, scanned])
def test_less_memory_and_equal_numbers(layer: Callable[..., jax.Array], layout: str) -> None:
    step, args = step_of(layer), arguments(LAYOUTS[layout], 4 if layer is scanned else 3)
    free = sdy.account(sdy.jit(step, donate_argnums=0, compiler_options=CPU_OPTIONS), *args)
    assert free.compiled is not None
    assert free.compiled.memory is not None
    limit = int(free.compiled.memory * 0.8)
    limited = sdy.jit(step, donate_argnums=0, memory=limit).lower(*args)
    compiled = limited.compile()
    needed = peak_bytes_of(compiled)

    assert needed is not None
    assert needed <= limit
    expected = sdy.jit(step)(*args)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), compiled(*args), expected)


def test_a_scan_over_layers_needs_less_memory_and_the_predicted_products() -> None:
    """XLA counts one iteration of each loop."""
    args = arguments(LAYOUTS["data"])
    params = {name: jnp.stack([each[name] for each in args[0]]) for name in ("up", "down")}

    def loss(params: Tree, x: jax.Array) -> jax.Array:
        return jnp.mean(jnp.square(lax.scan(lambda x, w: (dense(x, w), None), x, params)[0]))

    step = jax.value_and_grad(loss)
    free = sdy.jit(step).lower(params, args[1]).compile()
    needed = peak_bytes_of(free)
    assert needed is not None
    limit = int(needed * 0.5)
    limited = sdy.jit(step, memory=limit).lower(params, args[1])
    compiled = limited.compile()
    needed = peak_bytes_of(compiled)
    assert needed is not None
    assert needed <= limit
    all_, again = product_operations(partitioned_program(limited).local)
    flops, before = (each.cost_analysis()["flops"] for each in (compiled, free))
    assert flops == pytest.approx(before + again / _LAYERS, rel=0.05)
    assert 0 < again < all_
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6),
        compiled(params, args[1]),
        free(params, args[1]),
    )


@pytest.mark.parametrize("has_mesh", [False, True])
def test_one_device_keeps_the_limit(has_mesh: bool) -> None:
    """Donation, empty arrays, keys of random numbers and ordered effects are as without a limit."""
    params, x = jax.tree.map(np.asarray, arguments(LAYOUTS["data"], 3))
    if has_mesh:
        mesh = jax.make_mesh((1,), ("data",), (jax.sharding.AxisType.Auto,), devices=jax.devices()[:1])
        params, x = jax.device_put((params, x), NamedSharding(mesh, P()))
    limited_step = step_of(dense)

    def step(params: Tree, x: jax.Array, key: jax.Array, empty: jax.Array) -> Any:
        jax.debug.callback(lambda: None, ordered=not has_mesh)
        params, value = limited_step(params, x * jax.random.bernoulli(key, 0.9, x.shape))
        return params, value, jax.random.key_data(jax.random.fold_in(key, 1)), 2 * empty

    args = params, x, jax.random.key(0), jnp.zeros((0, 2))
    expected = jax.jit(step)(*args)
    free = peak_bytes_of(jax.jit(step, donate_argnums=0).lower(*args).compile())
    assert free is not None
    limit = int(free * 0.75)
    limited = sdy.jit(step, donate_argnums=0, memory=limit)
    needed = peak_bytes_of(limited.lower(*args).compile())
    assert needed is not None
    assert needed <= limit
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), limited(*args), expected)


def test_a_limit_that_nothing_reaches_is_reported() -> None:
    args = arguments(LAYOUTS["data"], 2)
    with pytest.warns(sdy.ShardingWarning, match="more than 1 KiB; split its arguments"):
        sdy.jit(step_of(dense), memory="1K").lower(*args).program  # noqa: B018


def test_a_limit_that_is_no_size() -> None:
    with pytest.raises(ValueError, match="'much' is not a size"):
        sdy.jit(step_of(dense), memory="much")
