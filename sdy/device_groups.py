"""Replica groups of collectives, and the shard of a tensor that each device holds.

Devices have ids from 0 to the size of the mesh minus one. The position of a device in the grid is a number in mixed
radix with a digit per axis; the digits of some axes, major first, make the index of the device's shard along those
axes.
"""

import math
from collections.abc import Sequence

import numpy as np

from sdy.axes import AxisRef, subtract, total_size
from sdy.box import Ints
from sdy.mesh import Mesh


def shard_indices(axes: Sequence[AxisRef], mesh: Mesh) -> list[int]:
    """Return, by device id, the index of each device's shard along `axes`."""
    indices = np.empty(mesh.size, np.int64)
    indices[_device_order(mesh)] = _indices(axes, mesh)
    return indices.tolist()


def grid_positions(axes: Sequence[AxisRef], mesh: Mesh) -> list[int]:
    """Return, by device id, each device's unique position along `axes` and then along all other axes of the mesh."""
    return shard_indices([*axes, *subtract(map(AxisRef, mesh), axes, mesh)], mesh)


def device_groups(axes: Sequence[AxisRef], mesh: Mesh) -> list[list[int]]:
    """Return the groups of devices that differ only along `axes`, each ordered by shard index along `axes`."""
    others = subtract(map(AxisRef, mesh), axes, mesh)
    by_group = np.lexsort((_indices(axes, mesh), _indices(others, mesh)))
    return _device_order(mesh)[by_group].reshape(-1, total_size(axes, mesh)).tolist()


def permuted_devices(
    source: Sequence[AxisRef], source_mesh: Mesh, target: Sequence[AxisRef], target_mesh: Mesh
) -> list[tuple[int, int]]:
    """Return a pair of devices for each shard: one that holds it along `source`, and one that needs it along `target`.

    The meshes have the same devices, possibly in another order. Device order breaks ties between replicas.
    """
    holders, users = (
        sorted(range(mesh.size), key=grid_positions(axes, mesh).__getitem__)
        for axes, mesh in ((source, source_mesh), (target, target_mesh))
    )
    return sorted(zip(holders, users, strict=True))


def _device_order(mesh: Mesh) -> Ints:
    """Return the device id at each position of the grid."""
    return np.array(mesh.device_ids) if mesh.device_ids else np.arange(mesh.size)


def _indices(axes: Sequence[AxisRef], mesh: Mesh) -> Ints:
    """Return the index along `axes` of each position of the grid."""
    positions = np.arange(mesh.size)
    indices = np.zeros_like(positions)
    for axis in axes:
        minor_axes = math.prod(size for _, size in mesh.axes[mesh.axis_index(axis.name) + 1 :])
        stride = minor_axes * (mesh.axis_size(axis.name) // axis.end_in(mesh))
        size = axis.size_in(mesh)
        indices = indices * size + positions // stride % size
    return indices
