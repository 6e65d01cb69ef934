"""Which part of an array a device has, and arrays put together from the parts of all devices."""

from collections.abc import Mapping, Sequence

import numpy as np

from sdy.axes import AxisRef, total_size
from sdy.device_groups import shard_indices
from sdy.interpreter.values import Array
from sdy.mesh import Mesh

AxesOfDims = Sequence[Sequence[AxisRef]]
"""For each dimension, the axes that split it."""


def shard(whole: Array, axes_of_dims: AxesOfDims, mesh: Mesh, device: int) -> Array:
    """The part of `whole` that `device` has, all parts being of one size."""
    return whole[_place(whole.shape, axes_of_dims, mesh, device)]


def together(shards: Mapping[int, Array], axes_of_dims: AxesOfDims, mesh: Mesh) -> Array:
    """The array of which `shards`, by device, are the parts."""
    first = next(iter(shards.values()))
    shape = [size * total_size(axes, mesh) for size, axes in zip(first.shape, axes_of_dims, strict=True)]
    whole = np.empty(shape, first.dtype)
    for device, part in shards.items():
        whole[_place(shape, axes_of_dims, mesh, device)] = part
    return whole


def _place(shape: Sequence[int], axes_of_dims: AxesOfDims, mesh: Mesh, device: int) -> tuple[slice, ...]:
    slices: list[slice] = []
    for size, axes in zip(shape, axes_of_dims, strict=True):
        part = size // total_size(axes, mesh)
        start = shard_indices(axes, mesh)[device] * part
        slices.append(slice(start, start + part))
    return tuple(slices)
