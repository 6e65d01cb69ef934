"""Badges of collectives, and the headline of avoidable costs in `sdy.report`."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import sdy
from sdy.passes.account.lint.findings import Finding, Findings
from sdy.passes.account.report.findings import avoidable
from sdy.passes.spmd.costs.hardware import hardware_of


@pytest.fixture(scope="module")
def mesh() -> Mesh:
    return jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def tensor(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def mlp(params: Any, x: jax.Array) -> jax.Array:
    return jnp.mean((jnp.tanh(x @ params["up"] + params["bias"]) @ params["down"]) ** 2)


def step(params: Any, x: jax.Array) -> Any:
    loss, gradients = jax.value_and_grad(mlp)(params, x)
    return loss, jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)


PARAMS = {"up": tensor(64, 256), "bias": tensor(256), "down": tensor(256, 64)}
SPECS = {"up": P("data", "model"), "bias": P("model"), "down": P("model", "data")}


def scanned(params: Any, x: jax.Array) -> jax.Array:
    return jnp.sum(jax.lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, params)[0])


def windows(x: jax.Array) -> jax.Array:
    return jax.lax.conv_general_dilated(x, jnp.ones((1, 1, 3)), (1,), "SAME")


def product(x: jax.Array, w: jax.Array) -> jax.Array:
    return x @ w


def loss(x: jax.Array) -> jax.Array:
    return jnp.sum(jnp.tanh(x))


def mean(x: jax.Array) -> jax.Array:
    return jnp.tanh(x).sum(0)


def transposed(x: jax.Array) -> jax.Array:
    return x + jnp.transpose(x)


def badges(step: Callable[..., Any], specs: Any, *args: Any, mesh: Mesh) -> set[tuple[str, str, str]]:
    data = sdy.report(sdy.jit(step, mesh=mesh, in_shardings=specs), *args).data
    return {
        (each["kind"], each["axes"], data["badges"][each["badge"]][0])
        for group in data["collectives"]
        for each in group
    }


def test_a_training_step_has_sums_and_gathers_of_parameters(mesh: Mesh) -> None:
    found = badges(step, (SPECS, P("data")), PARAMS, tensor(512, 64), mesh=mesh)
    assert ("all-gather", "data", "FSDP gather") in found
    assert ("all-reduce", "model", "tensor-parallel sum") in found
    assert ("all-reduce", "data", "gradient sum") in found
    assert {badge for _, axes, badge in found if axes == "model"} == {"tensor-parallel sum"}


def test_a_forward_pass_has_no_gradients(mesh: Mesh) -> None:
    found = badges(product, (P("data", "model"), P("model")), tensor(64, 64), tensor(64, 64), mesh=mesh)
    assert {badge for *_, badge in found} == {"tensor-parallel sum"}


def test_layers_in_a_loop(mesh: Mesh) -> None:
    found = badges(jax.grad(scanned), (P(None, "data", None), P("data")), tensor(3, 64, 64), tensor(512, 64), mesh=mesh)
    assert "gradient sum" in {badge for *_, badge in found}
    assert "FSDP gather" in {badge for *_, badge in found}


@pytest.mark.parametrize(
    ("function", "specs", "args", "badge"),
    [
        (windows, (P(None, None, "data"),), [tensor(1, 1, 64)], "halo exchange"),
        (loss, (P("data"),), [tensor(64)], "scalar sum"),
        (mean, (P("data"),), [tensor(64, 8)], "partial sum"),
        (transposed, (P("data"),), [tensor(64, 64)], "layout change"),
    ],
)
def test_kinds(function: Callable[..., Any], specs: Any, args: list[Any], badge: str, mesh: Mesh) -> None:
    assert badge in {found for *_, found in badges(function, specs, *args, mesh=mesh)}


def test_constraints_and_shard_map(mesh: Mesh) -> None:
    def constrained(x: jax.Array) -> jax.Array:
        return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P())) * 2

    def mapped(x: jax.Array) -> jax.Array:
        return jax.shard_map(lambda x: jax.lax.psum(x, "data"), mesh=mesh, in_specs=P("data"), out_specs=P())(x)

    assert {badge for *_, badge in badges(constrained, (P("data"),), tensor(64), mesh=mesh)} == {"constraint"}
    assert {badge for *_, badge in badges(mapped, (P("data"),), tensor(64), mesh=mesh)} == {"shard_map"}


def test_the_headline_names_the_costliest_finding() -> None:
    one = Finding("rule", None, None, "the batch is not sharded", "shard argument 1", received=2**21, held=2**20)
    assert [*avoidable(Findings([one]))] == [
        "Avoidable: each device receives 2 MiB more and needs 1 MiB more memory than necessary (1 finding).",
        "Cause: the batch is not sharded.",
        "Fix: shard argument 1.",
    ]
    other = Finding("rule", None, None, "an axis is unused", "")
    first, second, _ = avoidable(Findings([one, other]))
    assert first.endswith("(2 findings).")
    assert second == "The costliest: the batch is not sharded."
    assert [*avoidable(Findings([other]))] == ["Avoidable: 1 finding.", "Cause: an axis is unused."]
    assert not [*avoidable(Findings())]


def test_a_large_program_has_findings_without_tried_fixes(mesh: Mesh, monkeypatch: pytest.MonkeyPatch) -> None:
    step = sdy.jit(lambda x, w: jnp.tanh(x @ w), mesh=mesh, in_shardings=(P("data"), P()))
    arguments = tensor(64, 32768), tensor(32768, 32768)
    (tried,) = sdy.report(step, *arguments).data["findings"]["items"]
    monkeypatch.setattr("sdy.passes.account.report.findings.MOST_OPERATIONS", 1)
    found = sdy.report(step, *arguments).data
    finding, *_ = found["findings"]["items"]
    assert finding["rule"] == "replicated-tensor"
    assert tried["compared"]
    assert not finding["compared"]
    assert finding["notes"][-1][0].endswith("other layouts were not tried")
    assert "sdy-lint tries fixes" in found["notes"][-1]


def test_findings_are_predicted_for_the_hardware_of_the_report(mesh: Mesh) -> None:
    step = sdy.jit(lambda x, w: jnp.tanh(x @ w), mesh=mesh, in_shardings=(P("data"), P()))
    arguments = tensor(64, 32768), tensor(32768, 32768)
    for hardware in (None, "tpu-v5e"):
        finding, *_ = sdy.report(step, *arguments, hardware=hardware).data["findings"]["items"]
        name = hardware_of(hardware).name if hardware else "h100"
        assert finding["compared"].endswith(f"(predicted for {name})")


def test_findings_can_be_left_out(mesh: Mesh) -> None:
    found = sdy.report(sdy.jit(jnp.tanh, mesh=mesh, in_shardings=P("data")), tensor(64), findings=False)
    assert found.data["findings"] is None
    assert found.headline == found.data["headline"]
