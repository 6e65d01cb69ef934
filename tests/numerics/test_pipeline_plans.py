"""`sdy.mpmd.plan` predicts the bytes that devices hold and receive, and the time of schedules in closed form."""

import json
import math
from collections import Counter
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

import sdy
from pipelines import Training
from samples import covering, sample
from sdy.diagnostics import DiagnosticError
from sdy.passes.jax.mpmd.pipeline import Pipeline
from sdy.passes.mpmd.programs import entry_point
from sdy.passes.mpmd.step_execution import FragmentCost, execute
from sdy.passes.mpmd.steps import Call, Free, StepList

TRAININGS = {
    "1F1B": Training(),
    "GPipe": Training(schedule="GPipe"),
    "zero bubble": Training(schedule="ZeroBubbleH1"),
    "uneven stages": Training(layers=(1, 2, 3)),
    "tied": Training(layers=(1, 1, 1), tied=True),
    "two stages of four devices": Training(layers=(1, 1), devices=4),
}


def live_bytes() -> Counter[int]:
    """Return the bytes of arrays on each device."""
    live: Counter[int] = Counter()
    for array in jax.live_arrays():
        size = math.prod(array.sharding.shard_shape(array.shape)) * array.dtype.itemsize
        live.update({device.id: size for device in array.sharding.device_set})
    return live


class WatchedPipeline(Pipeline):
    """A pipeline that records the bytes on each device after each release."""

    def __call__(self, *arguments: Any) -> tuple[jax.Array, ...]:
        self.before, self.live = live_bytes(), list[Counter[int]]()
        return super().__call__(*arguments)

    def _free(self, step: Free, values: dict[int, jax.Array]) -> None:
        super()._free(step, values)
        self.live.append(live_bytes() - self.before)


@covering
@pytest.mark.parametrize("name", sample(TRAININGS, one_in=6))
@pytest.mark.parametrize("donates", [False, True])
def test_devices_hold_and_receive_the_bytes_of_the_plan(name: str, donates: bool):
    training = TRAININGS[name]
    module = sdy.parse(training.partitioned(donates=donates))
    pipeline, plan = WatchedPipeline(module), sdy.mpmd.plan(module)
    pipeline(*jax.tree.leaves(training.state()), *training.batch())

    releases = [number for number, step in enumerate(pipeline.steps) if isinstance(step, Free)]
    assert len(releases) == len(pipeline.live) > 4
    for number, live in zip(releases, pipeline.live, strict=True):
        predicted = plan.execution.live[number]
        assert [live[index] for index in range(training.stages * training.devices)] == [
            each for mesh in plan.meshes for each in [predicted[mesh]] * training.devices
        ]
    received = {link: size * training.devices for link, size in plan.execution.sent.items()}
    assert received == pipeline.received_bytes
    for (_, mesh), program in pipeline.programs.items():
        assert (program.peak_bytes() or 0) <= 1.25 * plan.execution.peaks[mesh]


@covering
@pytest.mark.parametrize("schedule", ["GPipe", "1F1B"])
@pytest.mark.parametrize("microbatches", [4, 7])
def test_time_of_a_step_has_the_closed_form(schedule: str, microbatches: int):
    """(m + p - 1) (tf + tb) for p stages and m microbatches."""
    main = entry_point(sdy.parse(Training(microbatches=microbatches, schedule=schedule).partitioned()))
    steps = StepList.of(main)
    seconds = {"F": 1.0, "B": 2.0}
    costs = {step.callee: FragmentCost(seconds[step.phase], 0) for step in steps.steps if isinstance(step, Call)}
    assert execute(steps, costs, [0] * len(steps.types), lambda _: 0.0).meshes.period == 3 * (microbatches + 4 - 1)


def block(weights: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.tanh(x @ weights)


def planned(rows: int, **options: Any) -> Any:
    """Return the plan of a training step of four stages on 4 x 2 devices."""
    pp = sdy.mpmd.stages(jax.make_mesh((4, 2), ("stage", "data"), axis_types=(AxisType.Auto,) * 2))

    def loss(weights: list[jax.Array], x: jax.Array) -> jax.Array:
        for index, own in enumerate(weights):
            x = pp.stage(index)(block)(own, x)
        return pp.stage(3)(jnp.mean)(x)

    def train(weights: list[jax.Array], x: jax.Array) -> Any:
        value, gradients = sdy.accumulate(jax.value_and_grad(loss), weights, x, microbatches=8)
        return value, [w - 0.1 * gradient for w, gradient in zip(weights, gradients, strict=True)]

    step = pp.jit(train, in_shardings=(None, P("data")), donate_argnums=0)
    weights = [jax.ShapeDtypeStruct((4096, 4096), "float32")] * 4
    return step.plan(weights, jax.ShapeDtypeStruct((rows, 4096), "float32"), **options)


def test_a_plan_says_whether_to_pipeline():
    plan = planned(8192)
    assert plan.unpipelined is not None
    assert plan.unpipelined.seconds < plan.seconds
    assert str(plan).splitlines()[-1].startswith("do not pipeline: ")
    assert [*plan.meshes] == ["stage0", "stage1", "stage2", "stage3"]
    assert 3 / 11 < plan.bubble < 0.6, "the bubble of eight microbatches, and the transfers"
    rows = plan.timeline(80).splitlines()
    assert [row.split()[0] for row in rows] == [*plan.meshes]
    events = json.loads(plan.to_perfetto())["traceEvents"]
    calls, transfers = 2 * 4 * 8, 2 * 3 * 8
    assert sum(event["ph"] == "X" for event in events) == calls + transfers


def test_gradients_of_microbatches_are_added_as_they_come():
    """A stage holds the sum of the gradients, not those of each microbatch: 64 MiB each, as its weights."""
    plan = planned(64, unpipelined=False)
    assert plan.memory < 5 * (64 << 20)


def test_a_plan_without_the_program_on_all_devices_has_no_verdict():
    plan = planned(8192, unpipelined=False, hardware="tpu-v5e")
    assert plan.unpipelined is None
    assert "pipeline" not in str(plan)
    assert plan.hardware.memory == 16 << 30


def test_a_step_without_enough_memory_does_not_fit():
    plan = planned(1 << 21, unpipelined=False, hardware="tpu-v5e")
    assert not plan.fits
    assert "does not fit" in str(plan)


def test_unknown_hardware_is_named():
    with pytest.raises(DiagnosticError, match="no hardware preset or file has this name; the presets are"):
        planned(8192, hardware="h1000")
