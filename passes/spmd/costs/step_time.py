"""The time that a step of a partitioned program takes on some hardware, told from the program alone.

Each device computes, then hears from others, then goes on: nothing is taken to happen at the same time. An operation
takes as long as its products, or as the memory that it reads and writes; a collective as long as its slowest link takes
for what a device receives, and a message's time for each doubling of the group.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from sdy.passes.common.symbols import Symbols
from sdy.passes.spmd.costs.communication import received
from sdy.passes.spmd.costs.footprint import host_bytes, peak_bytes
from sdy.passes.spmd.costs.fusion import FusedValues
from sdy.passes.spmd.costs.hardware import Hardware
from sdy.passes.spmd.costs.work import seconds_of
from sdy.stablehlo import CaseOp, CollectivePermuteOp, IfOp, WhileOp

AxisNames = tuple[str, ...]
"""The axes of a mesh that a collective runs along."""


@dataclass(frozen=True, eq=False)
class StepCost:
    """What a step costs each device."""

    compute: float
    """Seconds."""
    communication: Mapping[AxisNames, float]
    """Seconds along each set of axes."""
    memory: int
    """Bytes at once, arguments and results among them, without those on the host."""
    host_memory: int = 0
    """Bytes at once in the memory of the host."""

    @property
    def seconds(self) -> float:
        """How long the step takes."""
        return self.compute + sum(self.communication.values())


def step_cost(local: ModuleOp, mesh: Mesh, hardware: Hardware) -> StepCost:
    """What a step of `local`, the program of one device of `mesh`, costs on `hardware`."""
    grid = Grid(1, device_count(local))
    communication: dict[AxisNames, float] = defaultdict(float)
    for each in received(local):
        if each.bytes:
            axes = axes_of(each.collective, grid, mesh)
            communication[axes] += seconds_of_messages(axes, each.bytes, each.times, mesh, hardware)
    return StepCost(compute_seconds(local, hardware), dict(communication), peak_bytes(local), host_bytes(local))


def seconds_of_messages(axes: AxisNames, received: float, times: float, mesh: Mesh, hardware: Hardware) -> float:
    """How long a device takes to receive so many bytes in all from others along `axes`, in collectives of so many
    `times`."""
    links = [hardware.link_along(axis, mesh) for axis in axes]
    rounds = (math.ceil(math.log2(mesh.axis_size(axis))) for axis in axes)
    latency = sum(link.latency * each for link, each in zip(links, rounds, strict=True))
    return received / min(link.bandwidth for link in links) + times * latency


def compute_seconds(local: ModuleOp, hardware: Hardware) -> float:
    """How long a device computes in a step of `local`."""
    return _total(compute_times(local, hardware))


def compute_times(local: ModuleOp, hardware: Hardware) -> "list[OperationSeconds]":
    """How long a device computes each operation in a step of `local`; one of a function once for each call."""
    return _Compute(local, hardware).times()


def axes_of(collective: Operation, grid: Grid, mesh: Mesh) -> AxisNames:
    """The axes of `mesh` along which the devices differ that take part in a collective together."""
    if isinstance(collective, CollectivePermuteOp):
        groups = _pairs(collective)
    else:
        groups = [[device.partition for device in group] for group in groups_of(collective, grid)]
    sizes = [size for _, size in mesh.axes]
    places = np.argsort(mesh.device_ids) if mesh.device_ids else np.arange(mesh.size)
    differing: set[int] = set()
    for group in groups:
        digits = np.array(np.unravel_index(places[group], sizes))
        differing |= {*np.flatnonzero((digits != digits[:, :1]).any(1)).tolist()}
    return tuple([name for index, name in enumerate(mesh.axis_names) if index in differing])


def _pairs(permute: CollectivePermuteOp) -> list[list[int]]:
    pairs: list[list[int]] = np.array(permute.source_target_pairs.get_values()).reshape(-1, 2).tolist()
    return [[source, target] for source, target in pairs if source != target]


class OperationSeconds(NamedTuple):
    """How long a device computes an operation in a step, in all of its runs."""

    operation: Operation
    seconds: float


class _Compute:
    """Finds how long a device computes each operation; of branches, those of the one that takes longest."""

    def __init__(self, module: ModuleOp, hardware: Hardware):
        self._module = module
        self._hardware = hardware
        self._symbols = Symbols(module)
        self._fused = FusedValues()

    def times(self) -> list[OperationSeconds]:
        return self._block(main_function(self._module).body.block)

    def _block(self, block: Block) -> list[OperationSeconds]:
        return [each for op in block.ops for each in self._operation(op)]

    def _operation(self, op: Operation) -> Sequence[OperationSeconds]:
        match op:
            case WhileOp():
                known = loop_trips(op)
                trips = 1 if known is None else known
                return [OperationSeconds(inner, trips * seconds) for inner, seconds in self._block(op.body.block)]
            case CaseOp() | IfOp():
                branches = [self._block(block) for region in op.regions for block in region.blocks]
                return max(branches, key=_total, default=())
            case CallOp():
                return self._block(callee(op, self._symbols).body.block)
            case _:
                return (OperationSeconds(op, seconds_of(op, self._hardware, self._fused)),)


def _total(times: Sequence[OperationSeconds]) -> float:
    return sum([seconds for _, seconds in times])
