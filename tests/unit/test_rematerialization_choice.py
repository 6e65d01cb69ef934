"""Choice of the values to recompute: the limits that are reached."""

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from test_auto import transformer_step
from xdsl.dialects.builtin import ModuleOp

import sdy
from samples import large, sample
from sdy.ir.companions import clone_alone
from sdy.passes.account.partitioned_program import partitioned_program
from sdy.passes.common.call_graph import main_function
from sdy.passes.common.properties import value_bytes
from sdy.passes.spmd.costs.footprint import peak_bytes
from sdy.passes.spmd.costs.hardware import hardware_of
from sdy.passes.spmd.costs.kernels import source
from sdy.passes.spmd.costs.layout_copies import layout_copies
from sdy.passes.spmd.remat.kernel_timeline import KernelTimeline
from sdy.passes.spmd.remat.program import rematerialize
from sdy.passes.spmd.remat.search import Rematerialized

_LIMITS = sample((0.6, 0.8, 0.35, 0.5), one_in=2)
"""Memory limits, as fractions of the memory without recomputation."""


@pytest.fixture(scope="module")
def local() -> ModuleOp:
    module = transformer_step(3, 64, 128, 256, 4)
    sdy.propagate(module)
    sdy.partition(module)
    return module


def test_each_limit_is_reached_and_tighter_ones_take_longer(local: ModuleOp) -> None:
    """Values that are dropped first are recomputed for copies that read them before their first read did."""
    needed = peak_bytes(local)
    found: list[Rematerialized] = []
    for fraction in sorted(_LIMITS, reverse=True):
        found.append(rematerialize(clone_alone(local), int(fraction * needed), hardware_of("h100")))
        assert found[-1].memory <= fraction * needed
    assert [each.seconds for each in found] == sorted(each.seconds for each in found)


@large
def test_a_limit_that_is_not_reached_needs_no_more_than_a_looser_one() -> None:
    """An activation that is fused is computed again for the backward pass, whose kernels share no part of the first."""

    def loss(params: list[Any], x: jax.Array) -> jax.Array:
        for up, down in params:
            x = x + jax.nn.silu(x @ up) @ down
        return jnp.mean(x**2)

    params = [[jax.ShapeDtypeStruct(shape, "float32") for shape in ((64, 256), (256, 64))]] * 4
    module = sdy.from_jax(jax.grad(loss), params, jax.ShapeDtypeStruct((2048, 64), "float32"))
    sdy.propagate(module)
    sdy.partition(module)
    needed, hardware = peak_bytes(module), hardware_of("h100")
    memories = [
        rematerialize(clone_alone(module), int(fraction * needed), hardware).memory / needed
        for fraction in (0.5, 0.4, 0.2, 0.1)
    ]
    assert memories[0] <= 0.5
    assert memories == sorted(memories, reverse=True)


def test_updates_run_before_the_step_ends_where_gradients_do_not_fit() -> None:
    """The gradients of all layers would otherwise be in memory until the last one is known, and reduced as one."""

    def loss(params: list[jax.Array], x: jax.Array) -> jax.Array:
        for w in params:
            x = jnp.tanh(x @ w)
        return jnp.mean(x**2)

    def step(params: list[jax.Array], x: jax.Array) -> list[jax.Array]:
        return [w - 0.1 * g for w, g in zip(params, jax.grad(loss)(params, x), strict=True)]

    rows = NamedSharding(jax.make_mesh((2,), ("data",), (jax.sharding.AxisType.Auto,)), P("data"))
    params = [jax.ShapeDtypeStruct((256, 256), "float32")] * 8
    lowered = sdy.jit(step, donate_argnums=0).lower(params, jax.ShapeDtypeStruct((16, 256), "float32", sharding=rows))
    module = partitioned_program(lowered).local
    limit = sum(map(value_bytes, main_function(module).args)) + 4 * 256 * 256 * 4
    result = rematerialize(module, limit, hardware_of("h100"))
    assert result.memory <= limit
    assert not result.values


def test_a_value_with_a_copy_in_another_layout_can_be_dropped() -> None:
    """The copy is in memory for one product, the value itself over the peak."""

    def loss(params: list[jax.Array], x: jax.Array) -> jax.Array:
        for w in params:
            x = x + jnp.einsum("bhst,bthd->bshd", jnp.tanh(jnp.einsum("bshd,bthd->bhst", x, x)), jnp.sin(x) * w)
        return jnp.mean(x**2)

    params = [jax.ShapeDtypeStruct((8,), "float32")] * 6
    module = sdy.from_jax(jax.grad(loss), params, jax.ShapeDtypeStruct((4, 64, 4, 8), "float32"))
    sdy.propagate(module)
    sdy.partition(module)
    timeline = KernelTimeline(module)
    copied = [
        value
        for kernel in timeline.kernels
        for value in map(source, layout_copies(kernel.operation))
        if value in timeline.ends
    ]
    last_read = {value: time for time, kernel in enumerate(timeline.kernels) for value in kernel.reads}
    assert copied
    assert all(timeline.ends[value] >= last_read[value] for value in copied if value in last_read)
