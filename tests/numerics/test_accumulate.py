"""`sdy.accumulate` computes the gradients of the batch, microbatch by microbatch, without moving rows."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import sdy
from samples import large
from sdy.passes.jax.memory_limit import peak_bytes_of

Tree = Any
WIDTH, BATCH = 32, 8192


def loss(params: Tree, x: jax.Array, y: jax.Array) -> jax.Array:
    for up, down in params:
        x = x + jnp.tanh(x @ up) @ down
    return jnp.mean((x - y) ** 2)


def mesh() -> jax.sharding.Mesh:
    return jax.make_mesh((4,), ("data",), (jax.sharding.AxisType.Auto,), devices=jax.devices()[:4])


def arguments() -> tuple[Any, ...]:
    values = np.random.default_rng(0)

    def some(spec: P, *shape: int) -> jax.Array:
        array = jnp.asarray(values.normal(size=shape) / 8, jnp.float32)
        return jax.device_put(array, NamedSharding(mesh(), spec))

    rows = some(P("data"), BATCH, WIDTH), some(P("data"), BATCH, WIDTH)
    return [(some(P(), WIDTH, 4 * WIDTH), some(P(), 4 * WIDTH, WIDTH)) for _ in range(2)], *rows


def step(params: Tree, x: jax.Array, y: jax.Array, microbatches: Any) -> tuple[Tree, jax.Array]:
    value, gradients = sdy.accumulate(jax.value_and_grad(loss), params, x, y, microbatches=microbatches)
    return jax.tree.map(lambda w, g: w - 0.1 * g, params, gradients), value


def assert_equal(one: Tree, other: Tree) -> None:
    """Check that arrays are equal but for the rounding of sums, whose order differs by machine."""

    def check(a: jax.Array, b: jax.Array) -> None:
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6 * max(1.0, float(np.abs(b).max())))

    jax.tree.map(check, one, other)


@pytest.mark.parametrize("jit", [jax.jit, sdy.jit], ids=["jax.jit", "sdy.jit"])
@pytest.mark.parametrize("microbatches", [2, 8])
def test_it_equals_the_step_of_the_batch(jit: Callable[..., Any], microbatches: int) -> None:
    compiled = jit(partial(step, microbatches=microbatches)).lower(*arguments()).compile()
    whole = jit(partial(step, microbatches=1)).lower(*arguments()).compile()
    assert_equal(compiled(*arguments()), whole(*arguments()))
    assert not re.search("all-gather|all-to-all|collective-permute", compiled.as_text())
    needed, needed_by_batch = peak_bytes_of(compiled), peak_bytes_of(whole)
    assert needed is not None
    assert needed_by_batch is not None
    assert needed < needed_by_batch


def test_a_number_of_numpy_is_a_number_of_microbatches() -> None:
    params, x, y = arguments()
    accumulated = sdy.accumulate(jax.grad(loss), params, x, y, microbatches=np.int64(4))
    assert_equal(accumulated, jax.grad(loss)(params, x, y))


def test_sums_are_of_all_rows() -> None:
    params, x, y = arguments()

    def summed(params: Tree, x: jax.Array, y: jax.Array) -> jax.Array:
        return BATCH * loss(params, x, y) * x.shape[0] / BATCH

    accumulated = sdy.accumulate(jax.grad(summed), params, x, y, microbatches=4, reduce="sum")
    assert_equal(accumulated, jax.grad(summed)(params, x, y))


def test_mistakes_are_named() -> None:
    params, x, y = arguments()
    function: Callable[..., Any] = sdy.accumulate
    accumulate = partial(function, jax.grad(loss), params)
    with pytest.raises(ValueError, match=r"microbatches=3 does not divide the 8192 rows of batch\[0\], batch\[1\]"):
        accumulate(x, y, microbatches=3)
    with pytest.raises(ValueError, match=r"different numbers of rows: \{'batch\[0\]': 8192, 'batch\[1\]': 4096\}"):
        accumulate(x, y[:4096], microbatches=2)
    with pytest.raises(TypeError, match=r"batch\[0\]\['scale'\] has no dimension of rows"):
        accumulate({"scale": jnp.float32(1), "x": x}, microbatches=2)
    with pytest.raises(TypeError, match=r"microbatches=sdy.AUTO requires sdy.jit with in_shardings=sdy.AUTO"):
        accumulate(x, y, microbatches=sdy.AUTO)
    with pytest.raises(ValueError, match="reduce must be 'mean' or 'sum', not 'max'"):
        accumulate(x, y, microbatches=2, reduce="max")


@large
def test_the_plan_has_the_fastest_number_that_fits() -> None:
    automatic = partial(step, microbatches=sdy.AUTO)
    planned = partial(sdy.jit, automatic, mesh=mesh(), in_shardings=sdy.Auto(hardware="tpu-v5p"))
    ample = planned().plan(*arguments())
    assert ample.microbatches[1] == ample.cost
    limit = int(0.6 * ample.cost.memory)
    train = planned(memory=limit)
    plan = train.plan(*arguments())
    chosen = next(number for number, cost in plan.microbatches.items() if cost == plan.cost)
    assert plan.fits
    assert chosen > 1
    assert f"\n  microbatches  {chosen} ({chosen}: " in str(plan)
    fitting = [cost.seconds for cost in plan.microbatches.values() if cost.memory <= limit]
    assert plan.cost.seconds == min(fitting)
    assert_equal(train(*arguments()), jax.jit(partial(step, microbatches=1))(*arguments()))
