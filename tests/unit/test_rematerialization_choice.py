"""Choice of the values to recompute: the limits that are reached."""

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from test_auto import transformer_step
from xdsl.dialects.builtin import ModuleOp

import sdy
from sdy.ir.companions import clone_alone
from sdy.passes.spmd.costs.footprint import peak_bytes
from sdy.passes.spmd.costs.hardware import hardware_of
from sdy.passes.spmd.remat.program import Rematerialized, rematerialize

_LIMITS = (0.8, 0.6, 0.5, 0.35)
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
    for fraction in _LIMITS:
        found.append(rematerialize(clone_alone(local), int(fraction * needed), hardware_of("h100")))
        assert found[-1].memory <= fraction * needed
    assert [each.seconds for each in found] == sorted(each.seconds for each in found)


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
