"""Static estimate of the time of one step of a partitioned program on given hardware.

An operation follows the roofline model: the maximum of its compute time and its memory time. `network` has the time of
a collective, and `schedule` the time of all of them beside each other. On hardware with a link to the host, values
that are moved to host memory and back occupy that link, each direction beside the other one.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp
from xdsl.ir import Block, Operation

from sdy.dialect.meshes import device_count
from sdy.interpreter.grid import Grid
from sdy.interpreter.groups import groups_of
from sdy.mesh import Mesh
from sdy.passes.common.call_graph import callee, main_function
from sdy.passes.common.loops import loop_trips
from sdy.passes.common.properties import value_bytes
from sdy.passes.common.symbols import Symbols
from sdy.passes.spmd.costs.communication import CollectiveBytes, received
from sdy.passes.spmd.costs.footprint import Footprint, host_bytes, peak_bytes
from sdy.passes.spmd.costs.fusion import FusedValues
from sdy.passes.spmd.costs.hardware import Hardware
from sdy.passes.spmd.costs.host_memory import leaves_device
from sdy.passes.spmd.costs.in_place import is_placement
from sdy.passes.spmd.costs.network import AxisNames, Message, Network
from sdy.passes.spmd.costs.schedule import Execution, Occupation, Row, Schedule, Slice
from sdy.passes.spmd.costs.work import OperationTimes
from sdy.stablehlo import CaseOp, CollectivePermuteOp, IfOp, WhileOp

COMPUTATION = "computation"
"""The row of computation in a schedule."""

_COMPUTATION = frozenset([COMPUTATION])

_HOST: AxisNames = ("host memory",)
"""The key of transfers from and to the host in the communication of a step."""

_TO_HOST, _FROM_HOST = (frozenset([f"link {direction} the host"]) for direction in ("to", "from"))


@dataclass(frozen=True, eq=False)
class StepCost:
    """The estimated cost of one step on each device."""

    compute: float
    """Compute time in seconds."""
    communication: Mapping[AxisNames, float]
    """Communication time in seconds by the mesh axes of the collectives, and of transfers from and to the host."""
    memory: int
    """Peak device memory in bytes, arguments and results included."""
    host_memory: int = 0
    """Peak host memory in bytes."""
    overlap: float = 0.0
    """Seconds in which collectives run beside computation or each other."""
    received: float = 0.0
    """Bytes that a device receives."""

    @property
    def seconds(self) -> float:
        """The step time: compute plus communication, less what overlaps."""
        return self.compute + sum(self.communication.values()) - self.overlap


class StepTimes:
    """Times of one step of a per-device program: of each operation, and of all of them beside each other.

    Args:
        local: The partitioned program.
        mesh: The mesh of its devices.
        hardware: The hardware of each device.
    """

    def __init__(self, local: ModuleOp, mesh: Mesh, hardware: Hardware) -> None:
        self.local = local
        self.hardware = hardware
        runs = _Compute(local, hardware).times()
        self._runs = [each for each in runs if not _is_transfer(each.operation, hardware)]
        self._occupations: dict[Operation, Occupation] = {}
        """The time and the rows of each execution of an operation."""
        self._communication: dict[AxisNames, float] = defaultdict(float)
        self._received = 0.0
        grid, network = Grid(1, device_count(local)), Network(mesh, hardware)
        for each in received(local):
            if each.bytes:
                self._received += each.bytes
                message = message_of(each, axes_of(each.collective, grid, mesh))
                seconds = network.seconds(message)
                self._communication[message.axes] += seconds
                is_asynchronous = message.kind in hardware.asynchronous
                channels = network.channels(message.axes, message.devices)
                rows = frozenset(map(network.name_of, channels)) if is_asynchronous else _COMPUTATION
                self._occupations[each.collective] = Occupation(rows, seconds / each.times)
        for op, seconds, _ in self._runs:
            self._occupations.setdefault(op, Occupation(_COMPUTATION, seconds))
        for op, seconds, times in runs:
            if _is_transfer(op, hardware):
                self._occupations[op] = Occupation(_row_of_transfer(op, hardware), seconds)
                self._communication[_HOST] += times * seconds

    @property
    def computation(self) -> "list[OperationSeconds]":
        """The compute time of each operation; a called function is listed once per call."""
        return [*map(_over_step, self._runs)]

    @property
    def seconds(self) -> float:
        """The simulated time of the step."""
        return self._execution.seconds

    def cost(self, memory: Footprint | None = None) -> StepCost:
        """Return the cost of the step; `memory` is the footprint of the program if it is known."""
        compute, communication = _total(self._runs), sum(self._communication.values())
        overlap = min(max(compute + communication - self.seconds, 0.0), communication)
        needed = memory.bytes if memory else peak_bytes(self.local, self.hardware.backend)
        host = memory.host_bytes if memory else host_bytes(self.local, self.hardware.backend)
        return StepCost(compute, dict(self._communication), needed, host, overlap, self._received)

    def timeline(self) -> dict[Row, list[Slice]]:
        """Return what computation and each link do in the step.

        Returns:
            For "computation" and each link by its name, slices in the order in which they start.
        """
        rows: dict[Row, list[Slice]] = {COMPUTATION: []}
        for each in self._execution.slices:
            for row in sorted(each.rows):
                rows.setdefault(row, []).append(each)
        return rows

    @cached_property
    def _execution(self) -> Execution:
        return Schedule(self.local, self._occupations, self.hardware.pipelines_loops).execution()


def message_of(each: CollectiveBytes, axes: AxisNames) -> Message:
    """Return the message of a collective along `axes`."""
    return Message(each.collective.name.rpartition(".")[2], axes, each.devices, each.bytes, each.times)


def compute_seconds(local: ModuleOp, hardware: Hardware, fused: FusedValues | None = None) -> float:
    """Return the compute time in seconds of one step of the per-device program `local`, given its fused values."""
    return _total(_Compute(local, hardware, fused).times())


def compute_times(local: ModuleOp, hardware: Hardware) -> "list[OperationSeconds]":
    """Return the compute time of each operation in one step of `local`; a called function is listed once per call."""
    return [*map(_over_step, _Compute(local, hardware).times())]


def axes_of(collective: Operation, grid: Grid, mesh: Mesh) -> AxisNames:
    """Return the mesh axes along which the devices of a replica group, or of a source-target pair, differ."""
    if isinstance(collective, CollectivePermuteOp):
        groups = _pairs(collective)
    else:
        groups = [[device.partition for device in group] for group in groups_of(collective, grid)]
    return differing_axes(groups, mesh)


def differing_axes(groups: Sequence[Sequence[int]], mesh: Mesh) -> AxisNames:
    """Return the mesh axes along which the devices of a group differ."""
    sizes = [size for _, size in mesh.axes]
    places = np.argsort(mesh.device_ids) if mesh.device_ids else np.arange(mesh.size)
    differing: set[int] = set()
    for group in groups:
        digits = np.array(np.unravel_index(places[[*group]], sizes))
        differing |= {*np.flatnonzero((digits != digits[:, :1]).any(1)).tolist()}
    return tuple([name for index, name in enumerate(mesh.axis_names) if index in differing])


def _pairs(permute: CollectivePermuteOp) -> list[list[int]]:
    pairs: list[list[int]] = np.array(permute.source_target_pairs.get_values()).reshape(-1, 2).tolist()
    return [[source, target] for source, target in pairs if source != target]


class OperationSeconds(NamedTuple):
    """The compute time in seconds of one operation over all its executions in a step."""

    operation: Operation
    seconds: float


def _is_transfer(op: Operation, hardware: Hardware) -> bool:
    """Return whether `op` moves a value over the link between a device and its host."""
    return hardware.host is not None and is_placement(op)


def _row_of_transfer(op: Operation, hardware: Hardware) -> frozenset[Row]:
    """Return the rows that a transfer occupies: computation, too, if it waits for values from the host."""
    if leaves_device(op):
        return _TO_HOST
    return _FROM_HOST | _COMPUTATION if hardware.host_waits else _FROM_HOST


class _Runs(NamedTuple):
    """The compute time in seconds of each execution of an operation, and the number of executions in a step."""

    operation: Operation
    seconds: float
    times: int


class _Compute:
    """Sums compute times over a program; of several branches, the slowest counts."""

    def __init__(self, module: ModuleOp, hardware: Hardware, fused: FusedValues | None = None):
        self._module = module
        self._hardware = hardware
        self._symbols = Symbols(module)
        self._seconds = OperationTimes(hardware, FusedValues() if fused is None else fused)

    def times(self) -> list[_Runs]:
        return self._block(main_function(self._module).body.block)

    def _block(self, block: Block) -> list[_Runs]:
        return [each for op in block.ops for each in self._operation(op)]

    def _operation(self, op: Operation) -> Sequence[_Runs]:
        match op:
            case WhileOp():
                known = loop_trips(op)
                trips = 1 if known is None else known
                return [_Runs(inner, seconds, trips * times) for inner, seconds, times in self._block(op.body.block)]
            case CaseOp() | IfOp():
                branches = [self._block(block) for region in op.regions for block in region.blocks]
                return max(branches, key=_total, default=())
            case CallOp():
                return self._block(callee(op, self._symbols).body.block)
            case _ if _is_transfer(op, self._hardware):
                return (_Runs(op, self._hardware.host_seconds(value_bytes(op.results[0])), 1),)
            case _:
                return (_Runs(op, self._seconds.of(op), 1),)


def _over_step(runs: _Runs) -> OperationSeconds:
    return OperationSeconds(runs.operation, runs.times * runs.seconds)


def _total(runs: Sequence[_Runs]) -> float:
    return sum([times * seconds for _, seconds, times in runs])
