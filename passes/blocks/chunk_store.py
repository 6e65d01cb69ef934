"""Chunks within a memory limit: the least recently used ones are spilled to a temporary file."""

import gc
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sdy.passes.blocks.arrays import Array, storage_dtype, zarr
from sdy.passes.blocks.graph import StoredTensor
from sdy.passes.blocks.kernel import release_operands
from sdy.passes.blocks.memory import ResidentMemory, SpillFile, map_large_arrays, return_free_memory

Key = tuple[StoredTensor, int]

_CODE_BYTES = 2**23
"""The bytes that compiled programs take in the process, which spilling chunks does not make room for."""


class ChunkStore:
    """Chunks by tensor and number, least recently used ones spilled to a file.

    Args:
        limit: Maximal number of bytes in memory, of chunks and of what the process takes beside them.
        directory: Folder of the file; None is the system's folder of temporary files.
        results: Arrays of NumPy or Zarr to which the chunks of the program's results are written.
    """

    def __init__(self, limit: int, directory: Path | None, results: Mapping[StoredTensor, Any]):
        self.limit = limit
        self._results = results
        self._file = SpillFile(directory)
        self._place_of: dict[Key, int] = {}
        self._resident = ResidentMemory()
        self._held: OrderedDict[Key, Array] = OrderedDict()
        self._held_bytes = 0
        self._result_bytes = 0
        self._unmeasured = limit
        self._beside = 0
        self._kept = 0
        self._reserved = 0
        self._has_collected = False
        self.most_bytes = 0
        self.spilled_bytes = 0
        self.loaded_bytes = 0
        """Maximal bytes in memory, and total bytes written to and read from files."""

    def start(self) -> None:
        """Count what the process takes from here on, without the memory that building the graph took."""
        map_large_arrays()
        return_free_memory()
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
        release_operands()
        beside = self._measured()
        if beside > self._kept + max(self.limit // 16, _CODE_BYTES) and beside + self._held_bytes + size > self.limit:
            self._collect_garbage()
            return_free_memory()
            beside = self._kept = self._measured()
        self._beside = min(max(0, beside), self.limit // 2)

    def _collect_garbage(self) -> None:
        """Free the objects of compilations, which refer to each other, once."""
        if not self._has_collected:
            self._has_collected = True
            gc.collect()

    def put(self, tensor: StoredTensor, number: int, array: Array, is_read: bool) -> None:
        """Store a chunk, for which `make_room` has made room: in the results, and in memory if shards read it."""
        if tensor in self._results:
            write_chunk(self._results[tensor], tensor, number, array)
            if isinstance(self._results[tensor], np.ndarray):
                self._result_bytes += array.nbytes
                return
        if is_read:
            self._held[tensor, number] = array
            self._held_bytes += array.nbytes

    def read(self, tensor: StoredTensor, number: int, start: Sequence[int], end: Sequence[int]) -> Array:
        """Return elements of a chunk, from position `start` of the tensor to `end`."""
        array = self._held.get((tensor, number))
        if array is not None:
            self._held.move_to_end((tensor, number))
        elif tensor in self._results:
            return np.asarray(self._results[tensor][tuple(map(slice, start, end))]).view(tensor.dtype)
        else:
            array = self._file.read(self._place_of[tensor, number], tensor.chunk_shape(number), tensor.dtype)
            self.loaded_bytes += array.nbytes
        first, _ = tensor.bounds(number)
        return array[tuple(map(slice, map(int.__sub__, start, first), map(int.__sub__, end, first)))]

    def forget(self, tensor: StoredTensor, number: int) -> None:
        """Drop a chunk that is no longer needed."""
        array = self._held.pop((tensor, number), None)
        if array is not None:
            self._held_bytes -= array.nbytes
        place = self._place_of.pop((tensor, number), None)
        if place is not None:
            self._file.remove(place, tensor.chunk_bytes(number))

    def _measured(self) -> int:
        """Return the bytes that the process takes beside chunks, results and code."""
        return self._resident.grown() - self._held_bytes - self._result_bytes - _CODE_BYTES

    def _spill(self, key: Key, array: Array) -> None:
        self._held_bytes -= array.nbytes
        if key[0] not in self._results:
            self._place_of[key] = self._file.write(array)
            self.spilled_bytes += array.nbytes


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
    array[tuple(map(slice, *tensor.bounds(number)))] = chunk.view(array.dtype)
