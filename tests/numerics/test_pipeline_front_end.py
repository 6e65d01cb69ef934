"""Pipelines of `sdy.mpmd.stages` train as jax does on one device, and run under `jax.jit` without pipeline."""

from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

import sdy
from samples import covering, sample
from sdy.diagnostics import DiagnosticError
from sdy.passes.jax.mpmd import shardy_compiler
from sdy.passes.mpmd.schedules import SCHEDULES, Phase
from sdy.passes.mpmd.schedules import schedule as schedule_of

WIDTH, ROWS = 16, 32


def stages_of(count: int, chunks: int = 1) -> Any:
    mesh = jax.make_mesh((count, 8 // count), ("stage", "data"), axis_types=(AxisType.Auto,) * 2)
    return sdy.mpmd.stages(mesh, chunks=chunks)


def block(weights: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.tanh(x @ weights)


def squared_error(x: jax.Array, labels: jax.Array) -> jax.Array:
    return jnp.square(x - labels).mean()


def loss_in(pp: Any, layer: Callable[..., Any] = block) -> Callable[..., jax.Array]:
    """Return the loss of a model with one layer in each stage."""

    def loss(weights: list[jax.Array], x: jax.Array, labels: jax.Array) -> jax.Array:
        for index, own in enumerate(weights):
            x = pp.stage(index)(layer)(own, x)
        return pp.stage(len(weights) - 1)(squared_error)(x, labels)

    return loss


def adam_step(
    loss: Callable[..., jax.Array], microbatches: int, reduce: Literal["mean", "sum"] = "mean"
) -> Callable[..., Any]:
    def step(state: Any, x: jax.Array, labels: jax.Array) -> Any:
        weights, first, second, count = state
        value, gradients = sdy.accumulate(
            jax.value_and_grad(loss), weights, x, labels, microbatches=microbatches, reduce=reduce
        )
        count = count + 1
        first = jax.tree.map(lambda moment, gradient: 0.9 * moment + 0.1 * gradient, first, gradients)
        second = jax.tree.map(lambda moment, gradient: 0.99 * moment + 0.01 * gradient**2, second, gradients)
        scale = 1 / (1 - 0.9**count)
        weights = jax.tree.map(lambda w, m, v: w - 0.01 * scale * m / (jnp.sqrt(v) + 1e-6), weights, first, second)
        return value, (weights, first, second, count)

    return step


def state_of(count: int) -> Any:
    random = np.random.default_rng(0)
    weights = [(random.normal(size=(WIDTH, WIDTH)) / 4).astype(np.float32) for _ in range(count)]
    zeros = [np.zeros_like(each) for each in weights]
    return weights, zeros, zeros, np.float32(0)


def batch() -> Any:
    return np.random.default_rng(1).normal(size=(2, ROWS, WIDTH)).astype(np.float32)


def two_steps(step: Any, state: Any) -> list[np.ndarray[Any, Any]]:
    """Return losses and states."""
    results: list[Any] = []
    for _ in range(2):
        loss, state = step(state, *batch())
        results += map(np.asarray, (loss, *jax.tree.leaves(state)))
    return results


def assert_close(values: list[Any], wanted: list[Any]) -> None:
    for value, want in zip(values, wanted, strict=True):
        np.testing.assert_allclose(value, want, rtol=1e-4, atol=1e-5)


def without_stages(weights: list[jax.Array], x: jax.Array, labels: jax.Array) -> jax.Array:
    for own in weights:
        x = block(own, x)
    return squared_error(x, labels)


def chunks_of(schedule: str) -> int:
    return 2 if SCHEDULES[schedule].has_chunks else 1


@covering
@pytest.mark.parametrize("schedule", sample(SCHEDULES, one_in=3))
@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("reduce", ["mean", "sum"])
def test_training_in_stages_equals_that_on_one_device(schedule: str, count: int, reduce: Literal["mean", "sum"]):
    pp = stages_of(count, chunks_of(schedule))
    train = adam_step(loss_in(pp), 8, reduce)
    step = pp.jit(train, schedule=schedule, in_shardings=(None, P("data"), P("data")), donate_argnums=0)
    wanted = two_steps(jax.jit(adam_step(without_stages, 8, reduce)), state_of(len(pp)))
    assert_close(two_steps(step, state_of(len(pp))), wanted)


@covering
@pytest.mark.parametrize("schedule", sample(SCHEDULES, one_in=2))
@pytest.mark.parametrize("count", [2, 4])
def test_fragments_run_in_the_order_of_the_schedule(schedule: str, count: int):
    """The first stage has no gradient of an input: its backward has the turn of the first part of two."""
    pp = stages_of(count, chunks_of(schedule))
    step = pp.jit(adam_step(loss_in(pp), 8), schedule=schedule, in_shardings=(None, P("data"), P("data")))
    state = state_of(len(pp))
    order = schedule_of(schedule, count, 8, pp.chunks)
    plan = step.plan(state, *batch(), unpipelined=False)
    for mesh, units in zip(plan.meshes, order.devices, strict=True):
        own = [unit.phase for unit in units if mesh != "stage0" or unit.phase is not Phase.WEIGHTS]
        letters = ["F" if phase is Phase.FORWARD else "B" for phase in own]
        assert [each.letter for each in plan.execution.meshes.rows[mesh]] == letters


def test_one_program_runs_as_a_pipeline_and_without():
    pp = stages_of(4)
    train = adam_step(loss_in(pp), 4)
    wanted = two_steps(jax.jit(adam_step(without_stages, 1)), state_of(4))
    for step in (jax.jit(train), sdy.jit(train), pp.jit(train), jax.jit(train)):
        assert_close(two_steps(step, state_of(4)), wanted)


def test_recomputed_and_jitted_losses_are_pipelined():
    pp = stages_of(4)
    for loss in (loss_in(pp, jax.checkpoint(block)), jax.jit(loss_in(pp))):
        step = pp.jit(jax.value_and_grad(loss))
        weights = state_of(4)[0]
        value, gradients = step(weights, *batch())
        want, wanted = jax.value_and_grad(without_stages)(weights, *batch())
        assert_close([value, *gradients], [want, *wanted])
        # Activations go to the right, cotangents to the left, and nothing else moves.
        neighbors = {(f"stage{index}", f"stage{index + 1}") for index in range(3)}
        received = step.pipeline(weights, *batch()).received_bytes
        assert {*received} == neighbors | {(right, left) for left, right in neighbors}
        assert {*received.values()} == {batch()[0].nbytes * 2}, "both devices of a stage receive all rows"


@pytest.mark.parametrize("schedule", sample(["zb-h1", "1f1b"], one_in=2))
def test_dropout_drops_the_same_values_as_without_pipeline(schedule: str):
    """Also in the backward, which draws the mask again if the layer is recomputed."""
    pp = stages_of(4)

    def loss(weights: list[jax.Array], x: jax.Array, labels: jax.Array, key: jax.Array) -> jax.Array:
        for index, own in enumerate(weights):
            layer = jax.checkpoint(dropped) if index % 2 else dropped
            x = pp.stage(index)(layer)(own, x, jax.random.fold_in(key, index))
        return pp.stage(3)(squared_error)(x, labels)

    def train(weights: list[jax.Array], x: jax.Array, labels: jax.Array, key: jax.Array) -> Any:
        gradients_of = jax.value_and_grad(partial(loss, key=key))
        return *sdy.accumulate(gradients_of, weights, x, labels, microbatches=8), jax.random.split(key)[0]

    arguments = state_of(4)[0], *batch(), jax.random.key(7)
    step = pp.jit(train, schedule=schedule, in_shardings=(None, P("data"), P("data"), None))
    value, gradients, key = step(*arguments)
    want, wanted, new = jax.jit(train)(*arguments)
    assert_close([value, *gradients, jax.random.key_data(key)], [want, *wanted, jax.random.key_data(new)])
    undropped, *_ = jax.jit(train)(*arguments[:3], jax.random.key(8))
    assert abs(float(want - undropped)) > 1e-3, "the key matters"


def dropped(weights: jax.Array, x: jax.Array, key: jax.Array) -> jax.Array:
    """Apply a layer with dropout."""
    y = block(weights, x)
    return jnp.where(jax.random.bernoulli(key, 0.8, y.shape), y / 0.8, 0)


def test_state_is_on_the_devices_of_its_stage():
    pp = stages_of(4)
    _, (weights, *_) = pp.jit(adam_step(loss_in(pp), 4))(state_of(4), *batch())
    devices = [sorted(device.id for device in each.sharding.device_set) for each in weights]
    assert devices == [[device.id for device in mesh.devices.flat] for mesh in pp.meshes.values()]


def test_a_stage_that_reads_from_a_later_one_is_rejected():
    pp = stages_of(4)

    def backwards(x: jax.Array) -> jax.Array:
        return pp.stage(1)(jnp.cos)(pp.stage(3)(jnp.sin)(x) + 1)

    with pytest.raises(DiagnosticError, match="stage 1 reads a result of stage 3, which comes later"):
        pp.jit(backwards)(batch()[0])


def test_a_scan_over_microbatches_is_rejected_with_what_to_write():
    pp = stages_of(4)

    def scanned(x: jax.Array) -> jax.Array:
        return jax.lax.map(pp.stage(0)(jnp.sin), x)

    with pytest.raises(DiagnosticError, match=r"stage 0 is called in a 'stablehlo.while'.*by sdy.accumulate"):
        pp.jit(scanned)(batch()[0])


def test_a_stage_in_a_stage_is_rejected():
    pp = stages_of(4)

    def nested(x: jax.Array) -> jax.Array:
        return pp.stage(2)(jnp.sin)(x) + 1

    with pytest.raises(DiagnosticError, match="stage 2 is called in stage 1; a stage cannot have others in it"):
        pp.jit(pp.stage(1)(nested))(batch()[0])


def test_wrong_stages_axes_and_schedules_are_named():
    pp = stages_of(4)
    with pytest.raises(ValueError, match="there is no stage 4: the mesh has 4 stages, from 0"):
        pp.stage(4)
    with pytest.raises(ValueError, match="the mesh has no axis 'pipe'; its axes are stage, data"):
        sdy.mpmd.stages(jax.make_mesh((4, 2), ("stage", "data"), axis_types=(AxisType.Auto,) * 2), "pipe")
    with pytest.raises(ValueError, match="there is no schedule 'dualpipe'; the schedules are gpipe, 1f1b"):
        pp.jit(block, schedule="dualpipe")


def test_jaxlib_without_compiler_is_named_with_its_version(monkeypatch: pytest.MonkeyPatch):
    child = shardy_compiler.CHILD.replace("import jaxlib._sdy_mpmd as mpmd", "raise ImportError")
    monkeypatch.setattr(shardy_compiler, "CHILD", child)
    pp = stages_of(4)
    with pytest.raises(NotImplementedError, match=rf"jaxlib {version('jaxlib')} has no MPMD compiler .* have it"):
        pp.jit(pp.stage(0)(jnp.sin))(batch()[0])
