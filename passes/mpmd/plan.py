"""Cost of a partitioned MPMD program before it is compiled: `sdy.mpmd.plan`."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from sdy.formatting import columns, escape_line, format_bytes, format_seconds
from sdy.mesh import Mesh
from sdy.mpmd.mesh_tensor import MeshTensorType
from sdy.mpmd.topology import topology_of
from sdy.passes.common.properties import num_bytes
from sdy.passes.layouts import cheapest, propagated_layouts
from sdy.passes.mpmd.fragment_modules import fragment_module
from sdy.passes.mpmd.predicted_step import PredictedStep, Rows
from sdy.passes.mpmd.programs import entry_point, partitioned_module
from sdy.passes.mpmd.step_execution import FragmentCost, StepExecution, execute
from sdy.passes.mpmd.steps import Call, StepList
from sdy.passes.mpmd.timeline import Timeline
from sdy.passes.spmd.costs.hardware import Hardware, hardware_of
from sdy.passes.spmd.costs.network import Message, Network
from sdy.passes.spmd.costs.step_time import StepCost, StepTimes
from sdy.text import format

_TRANSFER = "collective_permute"
"""The collective with the cost of a transfer."""


@dataclass(frozen=True)
class PipelinePlan(PredictedStep[str]):
    """The predicted cost of a step of a partitioned program; `str` is a table.

    Attributes:
        hardware: The hardware of each device.
        meshes: The mesh of each stage, by its name.
        execution: The fragments and transfers in time, and the memory of each mesh.
        unpipelined: The predicted cost of a step of the same program on the same devices as one program, with the
            layout that `sdy.auto` chooses; None if unknown.
    """

    hardware: Hardware
    meshes: Mapping[str, Mesh]
    execution: StepExecution
    unpipelined: StepCost | None = None

    @property
    def _computation(self) -> Timeline[str]:
        return self.execution.meshes

    @property
    def _rows(self) -> Rows:
        return {name: self.execution.meshes.rows.get(name, []) for name in self.meshes}

    @property
    def _links(self) -> Rows:
        links = self.execution.links.rows.items()
        return {f"{sender} to {reader}": slices for (sender, reader), slices in links}

    @property
    def memory(self) -> int:
        """The peak memory of a device, in bytes."""
        return max(self.execution.peaks.values())

    @property
    def fits(self) -> bool:
        """True if no device needs more than its memory."""
        return self.memory <= self.hardware.memory

    def sent(self, mesh: str) -> int:
        """Return the bytes that other meshes receive from a mesh, for each device of theirs."""
        return sum(size for (sender, _), size in self.execution.sent.items() if sender == mesh)

    def __str__(self) -> str:
        rows = [
            (
                escape_line(name),
                str(mesh.size),
                format_seconds(self.busy(name)),
                format_bytes(self.execution.peaks.get(name, 0)),
                format_bytes(self.sent(name)),
            )
            for name, mesh in self.meshes.items()
        ]
        fits = "fits" if self.fits else "does not fit"
        memory = f"{format_bytes(self.memory)} of {format_bytes(self.hardware.memory)}: {fits}"
        return "\n".join(
            [
                f"{len(self.meshes)} meshes on {escape_line(self.hardware.name)}",
                f"  step {format_seconds(self.seconds)}, bubble {self.bubble:.1%}, memory {memory}",
                *columns([("mesh", "devices", "computes", "memory", "sends"), *rows], numbers=(1, 2, 3, 4)),
                *self._verdict(),
            ]
        )

    __repr__ = __str__

    def _verdict(self) -> Sequence[str]:
        if self.unpipelined is None:
            return []
        other = self.unpipelined
        fits = other.memory <= self.hardware.memory
        beside = f"{format_seconds(other.seconds)} and {format_bytes(other.memory)} without a pipeline"
        if not fits:
            return [f"{beside}, which does not fit into memory"]
        if other.seconds <= self.seconds or not self.fits:
            return [f"do not pipeline: {beside}"]
        return [f"{beside}: the pipeline is {other.seconds / self.seconds:.2f} times as fast"]


def plan(
    program: Any, hardware: str | Hardware = "h100-hosts", *, mesh: Mesh | None = None, axis: str = "stage"
) -> PipelinePlan:
    """Predict the time, bubble, memory and bytes of a step of a partitioned MPMD program.

    The fragments are partitioned as `sdy.mpmd.run` does, but not compiled.

    Args:
        program: The program after the phase PARTITION of Shardy's MPMD compiler, as for `sdy.mpmd.run`.
        hardware: The name of a preset or of a hardware file.
        mesh: The mesh of all devices, for the link between stages; only `axis` by default.
        axis: The axis of the mesh along which the stages are.

    Raises:
        DiagnosticError: The program is invalid or not partitioned, or the hardware is unknown.

    Example:
        >>> print(sdy.mpmd.plan(text, "h100-hosts"))
    """
    module = partitioned_module(program)
    main = entry_point(module)
    topology = {named.name: named.mesh for named in topology_of(main)}
    steps = StepList.of(main)
    device = hardware_of(hardware) if isinstance(hardware, str) else hardware
    network = Network(mesh or Mesh.of({axis: len(topology)}), device)

    def transfer_seconds(size: int) -> float:
        return network.seconds(Message(_TRANSFER, (axis,), 0, size, 1))

    costs = _fragment_costs(module, steps, topology, device)
    sizes = [_shard_bytes(type_, topology[type_.mesh]) for type_ in steps.types]
    execution = execute(steps, costs, sizes, transfer_seconds, is_asynchronous=_TRANSFER in device.asynchronous)
    return PipelinePlan(device, topology, execution)


def _fragment_costs(
    module: ModuleOp, steps: StepList, meshes: Mapping[str, Mesh], hardware: Hardware
) -> dict[str, FragmentCost]:
    """Return the cost of each function that is called; equal ones are partitioned once."""
    known: dict[str, FragmentCost] = {}
    costs: dict[str, FragmentCost] = {}
    for name, mesh in {step.callee: step.mesh for step in steps.steps if isinstance(step, Call)}.items():
        fragment = fragment_module(module, name)
        text = format(fragment)
        if text not in known:
            local = cheapest(propagated_layouts(fragment, compare=False)).local
            cost = StepTimes(local, meshes[mesh], hardware).cost()
            known[text] = FragmentCost(hardware.launch + cost.seconds, cost.memory)
        costs[name] = known[text]
    return costs


def _shard_bytes(type_: MeshTensorType, mesh: Mesh) -> int:
    """Return the bytes of a value on each device of its mesh."""
    shape = type_.get_shape()
    local = shape if type_.sharding is None else type_.sharding.local_shape(shape, mesh)
    elements = math.prod(shape)
    return num_bytes(type_.tensor) // elements * math.prod(local) if elements else 0
