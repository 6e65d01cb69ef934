"""Chunks within a memory limit: the least recently used ones are spilled to files."""

from collections import OrderedDict
from collections.abc import Hashable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class _File(NamedTuple):
    """The bytes of an array, since NumPy's file format lacks types such as bfloat16."""

    path: Path
    dtype: np.dtype[Any]
    shape: tuple[int, ...]


class ChunkStore:
    """Arrays by key, least recently used ones spilled to files.

    Args:
        limit: Maximal number of bytes in memory.
        directory: Folder of the files.
    """

    def __init__(self, limit: int, directory: Path):
        self._limit = limit
        self._directory = directory
        self._held: OrderedDict[Hashable, Array] = OrderedDict()
        self._files: dict[Hashable, _File] = {}
        self._held_bytes = 0
        self.most_bytes = 0
        self.spilled_bytes = 0
        """Total bytes written to files, and maximal bytes in memory."""

    def make_room(self, size: int) -> None:
        """Spill the least recently used arrays until `size` more bytes fit."""
        while self._held and self._held_bytes + size > self._limit:
            key, array = self._held.popitem(last=False)
            self._held_bytes -= array.nbytes
            if key not in self._files:
                self._write(key, array)
        self.most_bytes = max(self.most_bytes, self._held_bytes + size)

    def put(self, key: Hashable, array: Array) -> None:
        """Store `array`, for which `make_room` has made room."""
        self._held[key] = array
        self._held_bytes += array.nbytes

    def get(self, key: Hashable) -> Array:
        """Return an array; a spilled one is memory-mapped, so that only the elements used are read."""
        if key in self._held:
            self._held.move_to_end(key)
            return self._held[key]
        file = self._files[key]
        return np.memmap(file.path, file.dtype, "r", shape=file.shape or (1,)).reshape(file.shape)

    def forget(self, key: Hashable) -> None:
        """Drop an array that is no longer needed."""
        if (array := self._held.pop(key, None)) is not None:
            self._held_bytes -= array.nbytes
        if file := self._files.pop(key, None):
            file.path.unlink()

    def _write(self, key: Hashable, array: Array) -> None:
        file = _File(self._directory / f"{self.spilled_bytes}.chunk", array.dtype, array.shape)
        file.path.write_bytes(np.ascontiguousarray(array).data.cast("B") if array.nbytes else b"")
        self._files[key] = file
        self.spilled_bytes += array.nbytes
