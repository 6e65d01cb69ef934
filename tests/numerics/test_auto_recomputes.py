"""`sdy.auto` under a memory limit chooses the values that the backward pass recomputes together with the layout."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import sdy
from samples import large
from sdy.ir.companions import clone
from sdy.passes.auto.plan import Plan
from sdy.passes.jax.memory_limit import peak_bytes_of
from sdy.passes.spmd.costs.footprint import peak_bytes
from sdy.passes.spmd.costs.hardware import Link, hardware_of

# One worker runs these tests, so that it makes their fixtures once.
pytestmark = pytest.mark.xdist_group("recomputing plans")

SLOW = replace(hardware_of("tpu-v5p"), links=[(8, Link(5e9, 1e-6))])
MESH = {"data": 4}
BATCH, LENGTH, WIDTH, HEADS, LAYERS = 16, 32, 64, 2, 2
SHAPES = {
    **dict.fromkeys("qkv", (WIDTH, HEADS, WIDTH // HEADS)),
    "o": (HEADS, WIDTH // HEADS, WIDTH),
    "up": (WIDTH, 4 * WIDTH),
    "down": (4 * WIDTH, WIDTH),
}


def layer(x: jax.Array, w: dict[str, jax.Array]) -> jax.Array:
    q, k, v = (jnp.einsum("bsw,whd->bhsd", x, w[name]) for name in "qkv")
    weights = jax.nn.softmax(jnp.einsum("bhqd,bhkd->bhqk", q, k))
    x = x + jnp.einsum("bhqk,bhkd,hdw->bqw", weights, v, w["o"])
    return x + jax.nn.relu(x @ w["up"]) @ w["down"]


def step(params: list[dict[str, jax.Array]], x: jax.Array) -> list[dict[str, jax.Array]]:
    def loss(params: list[dict[str, jax.Array]]) -> jax.Array:
        y = x
        for w in params:
            y = layer(y, w)
        return jnp.mean(y**2)

    return jax.tree.map(lambda w, g: w - 0.1 * g, params, jax.grad(loss)(params))


def arguments(layers: int = LAYERS) -> tuple[Any, Any]:
    values = np.random.default_rng(0)
    params = [
        {name: values.normal(scale=1 / 8, size=shape).astype(np.float32) for name, shape in SHAPES.items()}
        for _ in range(layers)
    ]
    return params, values.normal(size=(BATCH, LENGTH, WIDTH)).astype(np.float32)


def planned(memory: int | None, layers: int = LAYERS) -> tuple[ModuleOp, Plan]:
    module = sdy.from_jax(step, *arguments(layers))
    return module, sdy.auto(module, mesh=MESH, hardware=SLOW, memory=memory)


@pytest.fixture(scope="module")
def ample() -> Plan:
    return planned(None)[1]


@pytest.fixture(scope="module")
def limited(ample: Plan) -> tuple[ModuleOp, Plan]:
    return planned(int(0.65 * ample.cost.memory))


def test_recomputation_lets_a_faster_layout_fit(ample: Plan, limited: tuple[ModuleOp, Plan]) -> None:
    """Without it, only layouts that communicate more fit."""
    module, plan = limited
    recomputation = plan.recomputation
    assert ample.recomputation is None
    assert recomputation is not None
    assert plan.fits
    assert 1.5 * plan.cost.seconds < min(cost.seconds for cost in plan.front if cost.memory <= plan.memory)
    assert f"recomputed    {recomputation}\n" in str(plan)
    assert f"{recomputation.values[0]}\n" in str(plan)
    assert recomputation.saved_bytes >= ample.cost.memory - plan.memory
    assert recomputation.seconds > 0
    local = clone(module)
    sdy.propagate(local)
    sdy.partition(local)
    assert peak_bytes(local) == plan.cost.memory


def test_the_compiled_step_is_within_the_limit_and_computes_the_same(limited: tuple[ModuleOp, Plan]) -> None:
    plan = limited[1]
    mesh = jax.make_mesh((4,), ("data",), devices=jax.devices()[:4])
    train = sdy.jit(step, mesh=mesh, in_shardings=sdy.Auto(hardware=SLOW), memory=plan.memory)
    compiled = train.lower(*arguments()).compile()
    assert str(train.plan(*arguments())) == str(plan)
    needed = peak_bytes_of(compiled)
    assert needed is not None
    assert needed <= plan.memory
    results, expected = train(*arguments()), jax.jit(step)(*arguments())
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), results, expected)


def test_a_printed_program_recomputes(ample: Plan, limited: tuple[ModuleOp, Plan]) -> None:
    program = sdy.compile(sdy.parse(sdy.format(limited[0])), jax.devices()[:4])
    needed = program.peak_bytes()
    assert needed is not None
    assert needed <= 0.8 * ample.cost.memory
    results, expected = program(*jax.tree.leaves(arguments())), jax.tree.leaves(jax.jit(step)(*arguments()))
    for result, right in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, right, rtol=1e-5, atol=1e-6)


def momentum_step(params: Any, momentum: Any, x: jax.Array) -> Any:
    def loss(params: Any) -> jax.Array:
        hidden = x
        for w, b in params:
            hidden = jnp.tanh(hidden @ w + b)
        return jnp.mean(hidden**2)

    momentum = jax.tree.map(lambda old, new: 0.9 * old + new, momentum, jax.grad(loss)(params))
    return jax.tree.map(lambda old, new: old - 0.1 * new, params, momentum), momentum


@pytest.fixture(scope="module")
def plans() -> list[Plan]:
    """Return the plans of a program for growing limits of memory; nothing fits into the first one."""
    params = [(np.zeros((64, 64), np.float32), np.zeros(64, np.float32))] * 2
    program = sdy.from_jax(momentum_step, params, params, np.zeros((32, 64), np.float32))
    mesh = {"data": 4, "model": 2}
    limits = ["24K", "34K", "110K"]
    return [sdy.auto(clone(program), mesh=mesh, hardware="cpu-8", memory=limit) for limit in limits]


@large
def test_a_larger_limit_gives_no_slower_plan(plans: list[Plan]) -> None:
    seconds = [plan.cost.seconds for plan in plans if plan.fits]
    assert len(seconds) == 2
    assert seconds == sorted(seconds, reverse=True)


@large
def test_a_limit_that_nothing_fits_gives_the_plan_with_the_least_memory(plans: list[Plan]) -> None:
    least = [plan.cost.memory for plan in plans if not plan.fits]
    assert max(least) <= min(plan.cost.memory for plan in plans if plan.fits)
    # Values are recomputed, although arguments and results alone exceed the limit.
    (_, ample), (_, scarce) = planned(None, layers=1), planned(1, layers=1)
    assert not scarce.fits
    assert scarce.cost.memory <= 0.31 * ample.cost.memory
