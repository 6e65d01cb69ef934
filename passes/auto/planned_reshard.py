"""Cost of a reshard from the collectives of its plan, without the program that performs it."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from typing import NamedTuple

from xdsl.dialects.builtin import TensorType

from sdy.axes import Axes, AxisRef, total_size
from sdy.device_groups import permuted_devices
from sdy.mesh import Mesh
from sdy.passes.common.properties import num_bytes
from sdy.passes.spmd.costs.communication import received_in_group, received_in_permute
from sdy.passes.spmd.costs.network import AxisNames, Message, Network
from sdy.passes.spmd.costs.step_time import differing_axes
from sdy.passes.spmd.reshard.cheapest_plan import cheapest_plan
from sdy.passes.spmd.reshard.collective_cost import fused_steps
from sdy.passes.spmd.reshard.collective_steps import (
    AllGather,
    AllSlice,
    AllToAll,
    AxesPerDim,
    Collective,
    CollectivePermute,
)

Seconds = Mapping[AxisNames, float]
"""Communication time by the mesh axes of the collectives."""

_DEVICE_NUMBER = 4
"""The bytes of the device's number, from which a slice begins."""

_NAMES = {
    AllGather: "all_gather",
    AllSlice: "dynamic_slice",
    AllToAll: "all_to_all",
    CollectivePermute: "collective_permute",
}


@dataclass(frozen=True, slots=True)
class OperandReshard:
    """Reshard of an operand before the operation; users with equal reshards of a value share one."""

    operand: int
    """The index of the operand."""
    steps: tuple[str, ...]
    """The names and types of the resharding operations; reshards with equal steps are equal."""
    bytes: int
    """The bytes per device of the resharded operand."""
    communication: Seconds
    received: float
    """The bytes that a device receives."""


class PlannedReshard(NamedTuple):
    """The cost of a reshard per device."""

    reshard: OperandReshard | None
    """None if devices receive nothing."""
    scratch: int
    """The bytes of temporaries besides those of `reshard`."""


def planned_reshard(
    type_: TensorType, before: AxesPerDim, after: AxesPerDim, mesh: Mesh, network: Network
) -> PlannedReshard | None:
    """Return the cost of resharding a tensor, or None if the reshard must be partitioned to find it.

    It must be if the tensor is empty or padded, or if a step of the plan becomes several collectives or slices.

    Args:
        type_: The type of the tensor.
        before: The axes of each dimension before the reshard.
        after: The axes of each dimension after it.
        mesh: The mesh of the axes.
        network: The links between its devices.
    """
    shape: tuple[int, ...] = type_.get_shape()
    steps = cheapest_plan(before, after, shape, mesh)
    layouts = [before, *(step.after for step in steps)]
    parts = [[total_size(axes, mesh) for axes in layout] for layout in layouts]
    is_even = all(size and size % count == 0 for counts in parts for size, count in zip(shape, counts, strict=True))
    if not is_even or not _is_simple(steps):
        return None
    names: list[str] = []
    seconds: dict[AxisNames, float] = defaultdict(float)
    received, peak, bytes_ = 0.0, 0, 0
    for step, (axes, _), (old, new) in zip(steps, pairwise(layouts), pairwise(parts), strict=True):
        operand = bytes_
        for name, local in _operations(step, shape, old, new):
            result = TensorType(type_.element_type, local, type_.encoding)
            names.append(f"stablehlo.{name} {result}")
            bytes_ = num_bytes(result)
        peak = max(peak, operand + bytes_ + (_DEVICE_NUMBER if isinstance(step, AllSlice) else 0))
        if message := _message(step, axes, bytes_, mesh):
            seconds[message.axes] += network.seconds(message)
            received += message.bytes
    if any(map(_gathers_dims, steps)):
        peak = max(peak, 2 * bytes_)  # the shards as they arrive, and in order
    if not received:
        return PlannedReshard(None, peak - bytes_)
    reshard = OperandReshard(0, tuple(names), bytes_, dict(seconds), received)
    return PlannedReshard(reshard, max(peak - 2 * bytes_, 0))


def _is_simple(steps: Sequence[Collective]) -> bool:
    """Return whether each step becomes one collective or slice; a gather of several dimensions must be the last."""
    slices = [step for step in steps if isinstance(step, AllSlice)]
    return (
        all(len(fused) == 1 for fused in fused_steps(steps))
        and all(sum(map(bool, step.axes)) == 1 for step in slices)
        and not any(map(_gathers_dims, steps[:-1]))
    )


def _gathers_dims(step: Collective) -> bool:
    """Return whether a step gathers several dimensions: shards arrive along a new one, and are transposed."""
    return isinstance(step, AllGather) and sum(map(bool, step.axes)) > 1


def _operations(
    step: Collective, shape: Sequence[int], old: Sequence[int], new: Sequence[int]
) -> Iterable[tuple[str, Sequence[int]]]:
    """Return the names of the resharding operations of a step, and the shapes of their results on a device.

    Args:
        step: The step.
        shape: The global shape.
        old: The number of shards of each dimension before the step.
        new: The number of shards of each dimension after it.
    """
    if not _gathers_dims(step):
        return [(_NAMES[type(step)], [size // count for size, count in zip(shape, new, strict=True)])]
    local = [size // count for size, count in zip(shape, old, strict=True)]
    gathered = [before // after for before, after in zip(old, new, strict=True) if before > after]
    return [
        ("reshape", (1, *local)),
        ("all_gather", (math.prod(gathered), *local)),
        ("reshape", (*gathered, *local)),
    ]


def _message(step: Collective, before: AxesPerDim, bytes_: int, mesh: Mesh) -> Message | None:
    """Return what a device receives in a step, given the layout before it and the bytes of its result."""
    match step:
        case AllSlice():
            return None
        case CollectivePermute():
            axes, moved = _permute(tuple(chain(*before)), tuple(chain(*step.after)), mesh)
            devices, received = 0, received_in_permute(bytes_, moved, mesh.size)
        case AllGather() | AllToAll():
            refs = step.axes if isinstance(step, AllToAll) else tuple(chain(*step.axes))
            axes, devices = _group(refs, mesh)
            received = received_in_group(bytes_, devices)
    return Message(_NAMES[type(step)], axes, devices, received, 1) if received else None


def _group(axes: Sequence[AxisRef], mesh: Mesh) -> tuple[AxisNames, int]:
    """Return the mesh axes along which the devices of a group differ, and their number."""
    names = {axis.name for axis in axes if axis.size_in(mesh) > 1}
    return tuple([name for name in mesh.axis_names if name in names]), total_size(axes, mesh)


@lru_cache(2**10)
def _permute(before: Axes, after: Axes, mesh: Mesh) -> tuple[AxisNames, int]:
    """Return the mesh axes along which a permute moves shards, and the number of devices that receive one."""
    pairs = [pair for pair in permuted_devices(before, mesh, after, mesh) if pair[0] != pair[1]]
    return differing_axes(pairs, mesh), len(pairs)
