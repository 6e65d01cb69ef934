"""A value that one process of a mesh computes for all: searches limited by time differ between processes."""

import pickle
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

T = TypeVar("T")


def computed_once(mesh: jax.sharding.Mesh, compute: Callable[[], T]) -> T:
    """Return `compute()` of the process of the mesh's first device. All processes of the mesh must call this.

    Raises:
        RuntimeError: The computation failed in the other process, which raises its error itself.
    """
    first = mesh.devices.flat[0].process_index
    if all(device.process_index == first for device in mesh.devices.flat):
        return compute()
    if jax.process_index() != first:
        data = _broadcast(mesh, b"")
        if not data:
            raise RuntimeError(f"process {first} failed: see its error")
        return pickle.loads(data)
    try:
        value = compute()
    except BaseException:
        _broadcast(mesh, b"")
        raise
    _broadcast(mesh, pickle.dumps(value))
    return value


def _broadcast(mesh: jax.sharding.Mesh, data: bytes) -> bytes:
    """Return the bytes that the process of the mesh's first device passes; the others pass none."""
    sizes = _sum_over_devices(mesh, np.array([len(data)], np.int32))
    contents = np.zeros(sizes[0], np.int32)
    contents[: len(data)] = np.frombuffer(data, np.uint8)
    return _sum_over_devices(mesh, contents).astype(np.uint8).tobytes()


def _sum_over_devices(mesh: jax.sharding.Mesh, vector: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the vector that the process of the first device passes, as a sum over all devices."""
    rows = NamedSharding(mesh, PartitionSpec(mesh.axis_names))
    shape = (mesh.size, *vector.shape)
    leader = mesh.devices.flat[0].process_index == jax.process_index()

    def row(index: tuple[slice, ...]) -> np.ndarray[Any, Any]:
        return (vector if leader and index[0].start == 0 else np.zeros_like(vector))[None]

    devices = jax.make_array_from_callback(shape, rows, row)
    total = jax.jit(lambda array: array.sum(0), out_shardings=NamedSharding(mesh, PartitionSpec()))(devices)
    return np.asarray(total.addressable_data(0))
