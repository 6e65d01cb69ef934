"""Which devices take part together in a collective, and which part of a tensor each device has.

Devices go by their id, 0 to the size of the mesh minus one. Where a device stands in the grid is a number of digits,
one for each axis; the digits of some axes, major first, make the index of the device's shard along those axes.
"""

import math
from collections.abc import Sequence

import numpy as np

from sdy.axes import AxisRef, subtract, total_size
from sdy.box import Ints
from sdy.mesh import Mesh

Axes = Sequence[AxisRef]


def shard_indices(axes: Axes, mesh: Mesh) -> list[int]:
    """For every device, the index of its shard among those that `axes` make; in the order of the device ids."""
    indices = np.empty(mesh.size, np.int64)
    indices[_device_order(mesh)] = _indices(axes, mesh)
    return indices.tolist()


def places(axes: Axes, mesh: Mesh) -> list[int]:
    """For every device, its place along `axes` and then along all other axes of the mesh: each place has one device."""
    return shard_indices([*axes, *subtract(map(AxisRef, mesh), axes, mesh)], mesh)


def device_groups(axes: Axes, mesh: Mesh) -> list[list[int]]:
    """The groups of devices that differ along `axes` only, each in the order of its shard indices along `axes`."""
    others = subtract(map(AxisRef, mesh), axes, mesh)
    by_group = np.lexsort((_indices(axes, mesh), _indices(others, mesh)))
    return _device_order(mesh)[by_group].reshape(-1, total_size(axes, mesh)).tolist()


def _device_order(mesh: Mesh) -> Ints:
    """The device at each place of the grid."""
    return np.array(mesh.device_ids) if mesh.device_ids else np.arange(mesh.size)


def _indices(axes: Axes, mesh: Mesh) -> Ints:
    """The index along `axes` of each place of the grid."""
    places = np.arange(mesh.size)
    indices = np.zeros_like(places)
    for axis in axes:
        minor_axes = math.prod(size for _, size in mesh.axes[mesh.axis_index(axis.name) + 1 :])
        stride = minor_axes * (mesh.axis_size(axis.name) // axis.end_in(mesh))
        size = axis.size_in(mesh)
        indices = indices * size + places // stride % size
    return indices
