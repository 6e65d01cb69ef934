"""Extraction of a device's shard of an array, and assembly of an array from its shards."""

from collections.abc import Mapping, Sequence

import numpy as np

from sdy.axes import AxisRef, total_size
from sdy.device_groups import shard_indices
from sdy.interpreter.values import Array
from sdy.mesh import Mesh

AxesOfDims = Sequence[Sequence[AxisRef]]
"""The axes of each dimension."""


def shard(array: Array, axes_of_dims: AxesOfDims, mesh: Mesh, device: int) -> Array:
    """Return the shard of `array` on `device`; the axes must divide the dimensions."""
    return array[_slices(array.shape, axes_of_dims, mesh, device)]


def assemble(shards: Mapping[int, Array], axes_of_dims: AxesOfDims, mesh: Mesh) -> Array:
    """Assemble the global array from its `shards` by device."""
    first = next(iter(shards.values()))
    shape = [size * total_size(axes, mesh) for size, axes in zip(first.shape, axes_of_dims, strict=True)]
    array = np.empty(shape, first.dtype)
    for device, part in shards.items():
        array[_slices(shape, axes_of_dims, mesh, device)] = part
    return array


def _slices(shape: Sequence[int], axes_of_dims: AxesOfDims, mesh: Mesh, device: int) -> tuple[slice, ...]:
    slices: list[slice] = []
    for size, axes in zip(shape, axes_of_dims, strict=True):
        part = size // total_size(axes, mesh)
        start = shard_indices(axes, mesh)[device] * part
        slices.append(slice(start, start + part))
    return tuple(slices)
