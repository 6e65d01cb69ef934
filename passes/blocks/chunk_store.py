"""Chunks within a memory limit: the least recently used ones are spilled to a temporary Zarr store."""

import shutil
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sdy.passes.blocks.arrays import Array, storage_dtype, zarr
from sdy.passes.blocks.graph import StoredTensor
from sdy.passes.blocks.memory import ResidentMemory, return_free_memory

Key = tuple[StoredTensor, int]

_CODE_BYTES = 2**23
"""The bytes that compiled programs take in the process, which spilling chunks does not make room for."""


class ChunkStore:
    """Chunks by tensor and number, least recently used ones spilled to Zarr arrays.

    Args:
        limit: Maximal number of bytes in memory, of chunks and of what the process takes beside them.
        directory: Folder of the Zarr arrays.
        results: Arrays of NumPy or Zarr to which the chunks of the program's results are written.
        stored: The chunks that `results` have already.
    """

    def __init__(
        self,
        limit: int,
        directory: Path,
        results: Mapping[StoredTensor, Any],
        stored: Mapping[StoredTensor, Collection[int]],
    ):
        self.limit = limit
        self._directory = directory
        self._results = results
        self._arrays = dict(results)
        self._stored = {tensor: {*numbers} for tensor, numbers in stored.items()}
        self._resident = ResidentMemory()
        self._held: OrderedDict[Key, Array] = OrderedDict()
        self._held_bytes = 0
        self._result_bytes = 0
        self._unmeasured = limit
        self._beside = 0
        self._kept = 0
        self._reserved = 0
        self._names = count()
        self.most_bytes = 0
        self.spilled_bytes = 0
        self.loaded_bytes = 0
        """Maximal bytes in memory, and total bytes written to and read from files."""

    def start(self) -> None:
        """Count what the process takes from here on."""
        self._resident.start()

    def reserve(self, size: int) -> None:
        """Leave `size` bytes of the limit to arrays outside of the store."""
        self._reserved = size

    def make_room(self, size: int) -> None:
        """Spill the least recently used chunks until `size` more bytes fit."""
        self._unmeasured += size
        if self._unmeasured > self.limit // 32:
            self._measure(size)
        room = self.limit - size - self._beside
        while self._held and self._held_bytes > room:
            self._spill(*self._held.popitem(last=False))
        self.most_bytes = max(self.most_bytes, self._reserved + self._held_bytes + size)

    def _measure(self, size: int) -> None:
        """Measure the bytes that the process takes beside chunks and results, and free memory if it needs `size`.

        Chunks have at least half of the limit: code and the heap of Python are not freed.
        """
        self._unmeasured = 0
        beside = self._measured()
        if beside > self._kept + max(self.limit // 16, _CODE_BYTES) and beside + self._held_bytes + size > self.limit:
            return_free_memory()
            beside = self._kept = self._measured()
        self._beside = min(max(0, beside), self.limit // 2)

    def put(self, tensor: StoredTensor, number: int, array: Array, is_read: bool) -> None:
        """Store a chunk, for which `make_room` has made room: in the results, and in memory if shards read it."""
        if tensor in self._results:
            self._write(tensor, number, array)
            if isinstance(self._results[tensor], np.ndarray):
                self._result_bytes += array.nbytes
                return
        if is_read:
            self._held[tensor, number] = array
            self._held_bytes += array.nbytes

    def read(self, tensor: StoredTensor, number: int, start: Sequence[int], end: Sequence[int]) -> Array:
        """Return elements of a chunk, from position `start` of the tensor to `end`."""
        array = self._held.get((tensor, number))
        if array is None:
            part = self._arrays[tensor][tuple(map(slice, start, end))]
            if not isinstance(self._arrays[tensor], np.ndarray):
                self.loaded_bytes += part.nbytes
            return np.asarray(part).view(tensor.dtype)
        self._held.move_to_end((tensor, number))
        first = tensor.bounds[0][number]
        return array[tuple(map(slice, map(int.__sub__, start, first), map(int.__sub__, end, first)))]

    def forget(self, tensor: StoredTensor, number: int) -> None:
        """Drop a chunk that is no longer needed."""
        array = self._held.pop((tensor, number), None)
        if array is not None:
            self._held_bytes -= array.nbytes
        if tensor in self._arrays and tensor not in self._results:
            self._stored[tensor].discard(number)
            if not self._stored[tensor]:
                shutil.rmtree(self._directory / self._arrays.pop(tensor).basename)

    def _measured(self) -> int:
        """Return the bytes that the process takes beside chunks, results and code."""
        return self._resident.grown() - self._held_bytes - self._result_bytes - _CODE_BYTES

    def _spill(self, key: Key, array: Array) -> None:
        tensor, number = key
        self._held_bytes -= array.nbytes
        if number in self._stored.get(tensor, ()):
            return
        if tensor not in self._arrays:
            self._arrays[tensor] = create_array(self._directory, f"tensor{next(self._names)}", tensor, "none")
        self._write(tensor, number, array)
        self.spilled_bytes += array.nbytes

    def _write(self, tensor: StoredTensor, number: int, array: Array) -> None:
        self._stored.setdefault(tensor, set[int]()).add(number)
        write_chunk(self._arrays[tensor], tensor, number, array)


def create_array(directory: Path, name: str, tensor: StoredTensor, compression: Literal["auto", "none"]) -> Any:
    """Create the Zarr array of a tensor, with a chunk of the array for each chunk of the tensor."""
    return zarr().create_array(
        zarr().storage.LocalStore(directory),
        name=name,
        shape=tensor.shape,
        chunks=chunk_shape(tensor),
        dtype=storage_dtype(tensor.dtype),
        compressors=None if compression == "none" else "auto",
        config={"write_empty_chunks": True},
        attributes={"dtype": str(tensor.dtype)},
    )


def chunk_shape(tensor: StoredTensor) -> tuple[int, ...]:
    """Return the shape of the chunks of a tensor."""
    return tuple(max(size, 1) for size in tensor.shape) if tensor.grid is None else tensor.grid.chunk_shape


def write_chunk(array: Any, tensor: StoredTensor, number: int, chunk: Array) -> None:
    """Write a chunk of a tensor to its array, of NumPy or Zarr."""
    start, end = tensor.bounds
    array[tuple(map(slice, start[number], end[number]))] = chunk.view(array.dtype)
