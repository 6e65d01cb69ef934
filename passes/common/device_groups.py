"""Which devices take part together in a collective, and which part of a tensor each device has.

Devices go by their id, 0 to the size of the mesh minus one. Where a device stands in the grid is a number of digits,
one for each axis; the digits of some axes, major first, make the index of the device's shard along those axes.
"""

import math
from collections.abc import Sequence

from sdy.axes import AxisRef, subtract
from sdy.mesh import Mesh

Axes = Sequence[AxisRef]


def shard_indices(axes: Axes, mesh: Mesh) -> list[int]:
    """For every device, the index of its shard among those that `axes` make; in the order of the device ids."""
    indices = [0] * mesh.size
    for position, device in enumerate(mesh.device_order()):
        indices[device] = _index_at(position, axes, mesh)
    return indices


def places(axes: Axes, mesh: Mesh) -> list[int]:
    """For every device, its place along `axes` and then along all other axes of the mesh: each place has one device."""
    return shard_indices([*axes, *subtract(map(AxisRef, mesh), axes, mesh)], mesh)


def device_groups(axes: Axes, mesh: Mesh) -> list[list[int]]:
    """The groups of devices that differ along `axes` only, each in the order of its shard indices along `axes`."""
    others = subtract(map(AxisRef, mesh), axes, mesh)
    groups: dict[int, dict[int, int]] = {}
    for position, device in enumerate(mesh.device_order()):
        groups.setdefault(_index_at(position, others, mesh), {})[_index_at(position, axes, mesh)] = device
    return [[group[index] for index in sorted(group)] for _, group in sorted(groups.items())]


def _index_at(position: int, axes: Axes, mesh: Mesh) -> int:
    index = 0
    for axis in axes:
        minor_axes = math.prod(size for _, size in mesh.axes[mesh.axis_index(axis.name) + 1 :])
        stride = minor_axes * (mesh.axis_size(axis.name) // axis.end_in(mesh))
        size = axis.size_in(mesh)
        index = index * size + position // stride % size
    return index
