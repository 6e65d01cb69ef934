"""Temporary file of chunks that do not fit in memory. The system removes it when the process ends, however it ends."""

import tempfile
from collections import defaultdict
from functools import cached_property
from io import BufferedRandom
from pathlib import Path

import numpy as np

from sdy.passes.blocks.arrays import Array


class SpillFile:
    """A file of arrays, created with the first one. An array takes the place of a removed one of the same size.

    Args:
        directory: The folder of the file; None is the system's folder of temporary files.
    """

    def __init__(self, directory: Path | None):
        self._directory = directory
        self._end = 0
        self._free: defaultdict[int, list[int]] = defaultdict(list)

    @cached_property
    def _file(self) -> BufferedRandom:
        return tempfile.TemporaryFile(dir=self._directory)

    def write(self, array: Array) -> int:
        """Write an array, and return its place."""
        free = self._free[array.nbytes]
        if free:
            place = free.pop()
        else:
            place, self._end = self._end, self._end + array.nbytes
        self._file.seek(place)
        self._file.write(_bytes(np.ascontiguousarray(array)).data)
        return place

    def read(self, place: int, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> Array:
        """Return a copy of the array at a place."""
        array = np.empty(shape, dtype)
        self._file.seek(place)
        self._file.readinto(_bytes(array).data)
        return array

    def remove(self, place: int, size: int) -> None:
        """Let another array of `size` bytes take a place."""
        self._free[size].append(place)


def _bytes(array: Array) -> Array:
    """Return a view of the bytes of a contiguous array."""
    return array.reshape(-1).view(np.uint8)
