"""Cost of a pipeline before anything runs: `sdy.mpmd.predict` and `sdy.mpmd.compare`."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

from sdy.formatting import columns, format_bytes, format_seconds
from sdy.mesh import Mesh
from sdy.passes.mpmd.predicted_step import PredictedStep, Rows
from sdy.passes.mpmd.schedules import SCHEDULES, Schedule
from sdy.passes.mpmd.schedules import schedule as schedule_of
from sdy.passes.mpmd.simulation import Execution, StageCost, held, simulate
from sdy.passes.mpmd.timeline import Timeline
from sdy.passes.spmd.costs.hardware import Hardware, hardware_of
from sdy.passes.spmd.costs.network import Message, Network


@dataclass(frozen=True, slots=True)
class Prediction(PredictedStep[int]):
    """The predicted cost of a step of a pipeline; `str` is a table."""

    order: Schedule
    """The units of each device, in order."""
    stages: Sequence[StageCost]
    """The cost of each stage."""
    execution: Execution
    """The time of each unit and transfer."""
    memory: int
    """The bytes of memory of a device; 0 if unknown."""

    @property
    def _computation(self) -> Timeline[int]:
        return self.execution.devices

    @property
    def _rows(self) -> Rows:
        return {f"device {number}": slices for number, slices in sorted(self.execution.devices.rows.items())}

    @property
    def _links(self) -> Rows:
        links = self.execution.links.rows.items()
        return {f"device {sender} to {reader}": slices for (sender, reader), slices in links}

    def microbatches_held(self, device: int) -> float:
        """Return the peak of the activations that a device holds, in microbatches through all of its chunks."""
        return held(self.order, device, [1 / self.order.chunks] * self.order.stages)

    def bytes_held(self, device: int) -> float:
        """Return the peak of the memory of a device: activations, and state of its stages."""
        own = self.stages[device :: len(self.order.devices)]
        return held(self.order, device, [each.held for each in self.stages]) + sum(each.state for each in own)

    @property
    def peak(self) -> float:
        """The peak of the memory over all devices, in bytes."""
        return max(map(self.bytes_held, range(len(self.order.devices))))

    @property
    def fits(self) -> bool:
        """True if no device needs more than its memory."""
        return not self.memory or self.peak <= self.memory

    def __str__(self) -> str:
        count = len(self.order.devices)
        sent = [
            sum(size for (sender, _), size in self.execution.bytes.items() if sender == device)
            for device in range(count)
        ]
        rows = [
            (
                str(device),
                ", ".join(map(str, range(device, self.order.stages, count))),
                format_seconds(self.busy(device)),
                f"{self.microbatches_held(device):.4g}",
                format_bytes(self.bytes_held(device)),
                format_bytes(sent[device]),
            )
            for device in range(count)
        ]
        memory = format_bytes(self.peak)
        if self.memory:
            memory += f" of {format_bytes(self.memory)}: {'fits' if self.fits else 'does not fit'}"
        return "\n".join(
            [
                f"{self.order.name}, {count} devices, {self.order.microbatches} microbatches",
                f"  step {format_seconds(self.seconds)}, bubble {self.bubble:.1%}, memory {memory}",
                *columns([("device", "stages", "computes", "held", "memory", "sends"), *rows], numbers=(0, 2, 3, 4, 5)),
            ]
        )


def predict(
    stages: Sequence[StageCost],
    microbatches: int,
    *,
    schedule: str = "1f1b",
    devices: int | None = None,
    hardware: str | Hardware | None = None,
    mesh: Mesh | None = None,
    axis: str = "stage",
) -> Prediction:
    """Predict the time, bubble, memory and bytes of a step of a pipeline.

    Args:
        stages: The cost of each stage for one microbatch, on one device of the stage.
        microbatches: The number of microbatches of a step.
        schedule: `gpipe`, `1f1b`, `interleaved`, `zb-h1`, `zb-h2`, or `circular` for `sdy.mpmd.circular`.
        devices: The number of devices, or of groups of devices with one stage each; the number of stages by default.
            Device d has the stages d, d + devices, d + 2 devices, ...
        hardware: A preset, a file, or a description, whose links and memory are used. Without one, transfers take no
            time, and memory has no limit.
        mesh: The mesh of all devices, for the link of the axis; only `axis` by default.
        axis: The axis of the mesh along which the stages are.

    Returns:
        The prediction; `print` shows a table.

    Raises:
        ValueError: The schedule does not exist, or does not fit the numbers of stages, devices and microbatches, or the
            mesh has another number of devices along the axis.

    Example:
        >>> print(sdy.mpmd.predict([sdy.mpmd.StageCost(1e-3, 2e-3)] * 4, microbatches=16))
    """
    count = _device_count(stages, devices, mesh, axis)
    order = schedule_of(schedule, count, microbatches, len(stages) // count)
    described = hardware_of(hardware) if isinstance(hardware, str) else hardware
    transfers: dict[int, float] = {}
    if described:
        network = Network(mesh or Mesh.of({axis: count}), described)
        transfers = {
            stage: network.seconds(Message("collective_permute", (axis,), 0, each.sent, 1))
            for stage, each in enumerate(stages)
        }
    execution = simulate(order, stages, transfers)
    return Prediction(order, stages, execution, described.memory if described else 0)


def _device_count(stages: Sequence[StageCost], devices: int | None, mesh: Mesh | None, axis: str) -> int:
    """Return the number of devices, or raise if the stages or the mesh do not fit it."""
    count = devices or len(stages)
    if not stages or count < 1 or len(stages) % count:
        raise ValueError(f"{len(stages)} stages are not a multiple of {count} devices")
    if mesh and axis not in mesh:
        raise ValueError(f"the mesh has no axis '{axis}'; its axes are {', '.join(mesh.axis_names)}")
    if mesh and mesh.axis_size(axis) != count:
        raise ValueError(
            f"axis '{axis}' of the mesh has size {mesh.axis_size(axis)}; the stages are on {count} devices"
        )
    return count


@dataclass(frozen=True, slots=True)
class Comparison:
    """The predictions of all schedules that fit a program; `str` is a table with a verdict."""

    predictions: Sequence[Prediction]
    """From the fastest to the slowest."""
    unfit: Sequence[str]
    """The errors of the schedules that do not fit."""
    unpipelined: float
    """Seconds of a step of the same program on the same devices without a pipeline; 0 if unknown."""

    @property
    def best(self) -> Prediction | None:
        """The fastest prediction that fits into memory, or None if the program without a pipeline is faster."""
        best = next((each for each in self.predictions if each.fits), None)
        return None if best and self.unpipelined and best.seconds >= self.unpipelined else best

    def __str__(self) -> str:
        rows = [
            (
                each.order.name,
                format_seconds(each.seconds),
                f"{each.bubble:.1%}",
                format_bytes(each.peak),
                format_bytes(sum(each.execution.bytes.values())),
                "" if each.fits else "does not fit into memory",
            )
            for each in self.predictions
        ]
        lines = columns([("schedule", "step", "bubble", "memory", "sent", ""), *rows], numbers=(1, 2, 3, 4))
        beside = f", {format_seconds(self.unpipelined)} without a pipeline" if self.unpipelined else ""
        if best := self.best:
            verdict = f"{best.order.name}: {format_seconds(best.seconds)}{beside}"
        elif any(each.fits for each in self.predictions):
            verdict = f"do not pipeline: {format_seconds(self.unpipelined)} without a pipeline is the least"
        else:
            verdict = "no schedule fits into memory"
        return "\n".join([*lines, *(f"  {each}" for each in self.unfit), verdict])


def compare(
    stages: Sequence[StageCost],
    microbatches: int,
    *,
    devices: int | None = None,
    hardware: str | Hardware | None = None,
    mesh: Mesh | None = None,
    axis: str = "stage",
    unpipelined: float = 0.0,
) -> Comparison:
    """Predict a pipeline with each schedule, and compare them with the program without a pipeline.

    Schedules with one stage a device run consecutive stages as one.

    Args:
        stages: The cost of each stage for one microbatch, on one device of the stage.
        microbatches: The number of microbatches of a step.
        devices: The number of devices, as for `predict`.
        hardware: The hardware, as for `predict`.
        mesh: The mesh, as for `predict`.
        axis: The axis, as for `predict`.
        unpipelined: Seconds of a step of the same program on the same devices without a pipeline, such as the step time
            that `sdy.account` predicts; 0 if unknown.

    Raises:
        ValueError: The number of stages is not a multiple of the number of devices, or the mesh has another number.
    """
    count = _device_count(stages, devices, mesh, axis)
    chunks = len(stages) // count
    joined = [reduce(add, stages[device * chunks : (device + 1) * chunks]) for device in range(count)]
    predictions: list[Prediction] = []
    unfit: list[str] = []
    for name, kind in SCHEDULES.items():
        try:
            own = stages if kind.has_chunks else joined
            predictions.append(
                predict(own, microbatches, schedule=name, devices=count, hardware=hardware, mesh=mesh, axis=axis)
            )
        except ValueError as problem:
            unfit.append(str(problem))
    return Comparison(sorted(predictions, key=lambda each: each.seconds), unfit, unpipelined)
