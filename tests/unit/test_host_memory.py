"""Tensors offloaded to the host use no device memory: in accounts, reports, lint and automatic shardings."""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.ad_checkpoint import checkpoint_name, checkpoint_policies
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import sdy
from sdy.diagnostics import capture
from sdy.formatting import format_bytes

DEVICES = 4
PART = 1024 * 64 * 4 // DEVICES
"""Bytes of a shard of a tensor<1024x64xf32>."""
LAYERS, LAYER = 8, 64 * 64 * 4


def on(memory: str, *axes: str) -> NamedSharding:
    mesh = jax.make_mesh((DEVICES,), ("d",), axis_types=(AxisType.Auto,), devices=jax.devices()[:DEVICES])
    return NamedSharding(mesh, P(*axes), memory_kind=memory)


def rows(memory: str = "device") -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct((1024, 64), "float32", sharding=on(memory, "d"))


def weights(memory: str = "device") -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct((LAYERS, 64, 64), "float32", sharding=on(memory))


def moved(x: jax.Array, memory: str) -> jax.Array:
    return jax.device_put(x, on(memory, "d"))


def there_and_back(x: jax.Array, w: jax.Array) -> jax.Array:
    kept = moved(jnp.sin(x), "pinned_host")
    return jnp.cos(x) @ w[0] @ w[1] + moved(kept, "device")


def in_space(x: jax.Array, w: jax.Array) -> jax.Array:
    kept = jax.device_put(jnp.sin(x), jax.memory.Space.Host)
    return jnp.cos(x) @ w[0] @ w[1] + jax.device_put(kept, jax.memory.Space.Device)


def from_host(x: jax.Array, w: jax.Array) -> jax.Array:
    return moved(x, "device") @ w[0]


def to_host(x: jax.Array, w: jax.Array) -> Any:
    return x @ w[0], moved(x @ w[1], "pinned_host")


def two_results(x: jax.Array, w: jax.Array) -> Any:
    return x @ w[0], x @ w[1]


def weights_on_host(x: jax.Array, w: jax.Array) -> jax.Array:
    """Scan over layers in host memory; each iteration copies one layer to the device."""

    def layer(x: jax.Array, w: jax.Array) -> Any:
        return jnp.tanh(x @ jax.device_put(w, on("device"))), None

    return lax.scan(layer, x, w)[0]


def stacked_on_host(x: jax.Array, w: jax.Array) -> Any:
    def layer(x: jax.Array, w: jax.Array) -> Any:
        return jnp.tanh(x @ w), moved(x, "pinned_host")

    return lax.scan(layer, x, w)


def gradient(policy: Any) -> Callable[..., Any]:
    def layer(x: jax.Array, w: jax.Array) -> Any:
        return jnp.sin(checkpoint_name(checkpoint_name(x, "x") @ w, "h")), None

    return jax.grad(lambda x, w: lax.scan(jax.checkpoint(layer, policy=policy), x, w)[0].sum(), argnums=1)


def offloading(*names: str) -> Callable[..., Any]:
    policy = checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[],
        names_which_can_be_offloaded=names,
        offload_src="device",
        offload_dst="pinned_host",
    )
    return gradient(policy)


KEPT = gradient(checkpoint_policies.save_only_these_names("h"))
OFFLOADED = offloading("h")


class Case(NamedTuple):
    function: Callable[..., Any]
    device: float
    """Device memory, in shards of a tensor<1024x64xf32>."""
    host: float
    """Host memory, in the same unit."""
    x: jax.ShapeDtypeStruct = rows()
    w: jax.ShapeDtypeStruct = weights()
    results: Any = None


ON_HOST = "pinned_host"
CASES = {
    "there and back": Case(there_and_back, 6.25, 1),
    "in a memory space": Case(in_space, 6.25, 1),
    "argument": Case(from_host, 4.25, 1, rows(ON_HOST)),
    "argument in memory that is not pinned": Case(from_host, 4.25, 1, rows("unpinned_host")),
    "result": Case(to_host, 5.25, 1),
    "result by its sharding": Case(two_results, 5.25, 1, results=(on("device", "d"), on(ON_HOST, "d"))),
    "stacked results of a scan": Case(stacked_on_host, 5.25, LAYERS),
    "values for the gradient of a scan": Case(OFFLOADED, 18.25, LAYERS),
    "two stacks that begin with the same zeros": Case(offloading("x", "h"), 10.25, 2 * LAYERS),
    "layers of a scan": Case(weights_on_host, 3.25, LAYERS * LAYER / PART, w=weights(ON_HOST)),
}


def lowered(case: Case) -> Any:
    options = {} if case.results is None else {"out_shardings": case.results}
    return sdy.jit(case.function, **options).lower(case.x, case.w)


@pytest.mark.parametrize("name", CASES)
def test_bytes_on_the_host_are_counted_apart(name: str) -> None:
    case = CASES[name]
    account = sdy.account(lowered(case))
    assert account.memory / PART == pytest.approx(case.device, rel=1e-3)
    assert account.host_memory == case.host * PART
    assert re.search(rf"on the host +{account.host_memory:,}\b", str(account))


def test_offloading_takes_from_the_device_what_the_host_keeps() -> None:
    kept, offloaded = (sdy.account(sdy.jit(each).lower(rows(), weights())) for each in (KEPT, OFFLOADED))
    assert kept.host_memory == 0
    assert "on the host" not in str(kept)
    # Besides, the slices of an iteration, and the peak is at another time.
    assert (LAYERS - 1) * PART <= kept.memory - offloaded.memory <= (LAYERS + 2) * PART


@pytest.mark.parametrize("name", ["argument", "result", "values for the gradient of a scan"])
def test_all_tools_tell_the_same_bytes(name: str) -> None:
    stage = lowered(CASES[name])
    account = sdy.account(stage)
    with capture():
        report = sdy.report(stage)
        plan = sdy.auto(sdy.parse(sdy.format(stage.module)), hardware="cpu-8", time_limit=5)
    memory = report.data["memory"]
    assert memory["outside"] + max(memory["bytes"]) == account.memory
    assert f"The host keeps {format_bytes(account.host_memory)} for each device." in report.headline[-1]
    assert (plan.cost.memory, plan.cost.host_memory) == (account.memory, account.host_memory)
    assert f"on the host   {format_bytes(account.host_memory)}" in str(plan)


def test_lint_reports_no_bytes_of_a_tensor_on_the_host() -> None:
    large = jax.ShapeDtypeStruct((2**14, 2**14), "float32", sharding=on(ON_HOST))
    assert not sdy.lint(lambda w, x: x @ jax.device_put(w[:64], on("device")), large, rows())


def test_a_program_that_offloads_computes_the_same() -> None:
    x, w = np.ones((1024, 64), np.float32), np.full((LAYERS, 64, 64), 1 / 64, np.float32)
    given = jax.device_put(x, rows().sharding), jax.device_put(w, weights().sharding)
    for function in (there_and_back, OFFLOADED):
        got = sdy.jit(function).lower(rows(), weights()).compile()(*given)
        np.testing.assert_allclose(got, jax.jit(function)(x, w), rtol=1e-5)
