"""Values are moved to host memory and back under a memory limit, where the hardware has a link to the host."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from xdsl.dialects.builtin import ModuleOp

import sdy
from sdy.ir.companions import clone_alone
from sdy.mesh import Mesh
from sdy.passes.jax.device_hardware import offloading_hardware
from sdy.passes.spmd.costs.backend import Backend
from sdy.passes.spmd.costs.footprint import host_bytes, peak_bytes
from sdy.passes.spmd.costs.hardware import Hardware, Link, hardware_of
from sdy.passes.spmd.costs.step_time import StepTimes
from sdy.passes.spmd.remat.program import rematerialize

Tree = Any
LAYERS, WIDTH, BATCH = 4, 32, 512
FAST = replace(hardware_of("h100"), host=Link(1e13, 1e-9), host_waits=False)
SLOW = replace(FAST, host=Link(1e3, 1.0))


def layer(x: jax.Array, w: Tree) -> jax.Array:
    return x + jnp.tanh(x @ w["up"]) @ w["down"]


def unrolled(params: Tree, x: jax.Array) -> jax.Array:
    for number in range(LAYERS):
        x = layer(x, {name: w[number] for name, w in params.items()})
    return jnp.mean(jnp.square(x))


def scanned(params: Tree, x: jax.Array) -> jax.Array:
    return jnp.mean(jnp.square(lax.scan(lambda x, w: (layer(x, w), None), x, params)[0]))


def arguments() -> tuple[Tree, Any]:
    values = np.random.default_rng(0)
    shapes = {"up": (LAYERS, WIDTH, 4 * WIDTH), "down": (LAYERS, 4 * WIDTH, WIDTH)}
    params = {name: (values.normal(size=shape) / 8).astype(np.float32) for name, shape in shapes.items()}
    return params, values.normal(size=(BATCH, WIDTH)).astype(np.float32)


def local_program(loss: Any) -> ModuleOp:
    module = sdy.from_jax(jax.grad(loss), *arguments())
    sdy.propagate(module)
    sdy.partition(module)
    return module


@pytest.mark.parametrize("loss", [unrolled, scanned])
def test_offloaded_values_use_no_device_memory_and_do_not_change(loss: Any) -> None:
    free = local_program(loss)
    limited = clone_alone(free)
    needed = peak_bytes(free, Backend.ACCELERATOR)
    result = rematerialize(limited, int(0.5 * needed), FAST)
    limited.verify()
    assert result.memory == peak_bytes(limited, Backend.ACCELERATOR) <= 0.5 * needed
    assert sum(each.bytes for each in result.offloaded) >= host_bytes(limited) > 0
    leaves = jax.tree.leaves(arguments())
    expected = jax.tree.leaves(jax.grad(loss)(*arguments()))
    for run in (sdy.interpret(limited, *leaves), sdy.compile(limited, jax.devices()[:1])(*leaves)):
        for found, right in zip(run, expected, strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("hardware", [SLOW, replace(FAST, host=None)], ids=["a slow link", "no link"])
@pytest.mark.parametrize("loss", [unrolled, scanned])
def test_values_are_recomputed_where_transfers_cost_more(loss: Any, hardware: Hardware) -> None:
    module = local_program(loss)
    result = rematerialize(module, int(0.7 * peak_bytes(module, Backend.ACCELERATOR)), hardware)
    assert result.values
    assert not result.offloaded
    assert not host_bytes(module)


@pytest.mark.parametrize("loss", [unrolled, scanned])
def test_computation_waits_for_values_from_the_host_on_some_hardware(loss: Any) -> None:
    module = local_program(loss)
    rematerialize(module, int(0.5 * peak_bytes(module, Backend.ACCELERATOR)), FAST)
    hidden, exposed = (
        StepTimes(module, Mesh.of({"data": 1}), replace(FAST, host=Link(1e9, 1e-9), host_waits=waits)).cost().seconds
        for waits in (False, True)
    )
    assert exposed > hidden


def test_a_plan_names_offloaded_values_and_its_policy_offloads_them(tmp_path: Path) -> None:
    preset = Path(hardware_of("h100").path).read_text()
    file = tmp_path / "fast.toml"
    file.write_text(preset.replace("bandwidth = 52e9\nlatency = 1e-5", "bandwidth = 1e13\nlatency = 1e-9"))
    ample = sdy.auto(sdy.from_jax(jax.grad(unrolled), *arguments()), mesh={"data": 2}, hardware=str(file))
    module = sdy.from_jax(jax.grad(unrolled), *arguments())
    plan = sdy.auto(module, mesh={"data": 2}, hardware=str(file), memory=int(0.5 * ample.cost.memory))
    assert plan.fits
    assert plan.recomputation is not None
    assert plan.recomputation.offloaded
    assert plan.cost.host_memory > 0
    assert "offloaded to the host" in str(plan)
    namespace: dict[str, Any] = {}
    exec(plan.specs().checkpoint_policy(), namespace)
    assert namespace["OFFLOADED"]
    found = jax.grad(namespace["checkpointed"](unrolled))(*arguments())
    expected = jax.grad(unrolled)(*arguments())
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), found, expected)
    sdy.propagate(module)
    sdy.partition(module)
    assert peak_bytes(module, Backend.ACCELERATOR) == plan.cost.memory


def test_devices_of_the_cpu_recompute_instead() -> None:
    """They have host memory, but XLA ignores the operations that move values there."""
    assert not offloading_hardware(jax.devices())
    lowered = sdy.jit(jax.grad(unrolled), memory="3M").lower(*arguments())
    assert "annotate_device_placement" not in lowered.device_text()
