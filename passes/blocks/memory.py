"""Memory of a run of blocks: what the process takes, and a temporary file of the chunks that do not fit.

The system removes the file when the process ends, however it ends.
"""

import ctypes
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from functools import cached_property
from io import BufferedRandom
from pathlib import Path

import numpy as np

from sdy.passes.blocks.arrays import Array, empty

_M_MMAP_THRESHOLD, _MAPPED_BYTES = -3, 2**17
"""An option of `mallopt` in glibc, and its value."""


class ResidentMemory:
    """Growth of the resident memory of this process since `start`; 0 where the system does not tell it."""

    def __init__(self) -> None:
        self._start = resident_bytes()

    def start(self) -> None:
        """Count from here on."""
        self._start = resident_bytes()

    def grown(self) -> int:
        """Return the bytes since `start`."""
        return resident_bytes() - self._start


def resident_bytes() -> int:
    """Return the resident memory of this process in bytes; 0 where the system does not tell it."""
    try:
        with open("/proc/self/statm", "rb", buffering=0) as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def return_free_memory() -> None:
    """Return freed memory to the system, which the allocator of the C library otherwise keeps."""
    trim = _allocator("malloc_trim")
    if trim is not None:
        trim(0)


def map_large_arrays() -> None:
    """Let glibc map each array of 128 KiB separately, so that it returns the array to the system when it is freed.

    This is the default, but glibc raises it to 32 MiB as arrays are freed. Arrays are then parts of heaps, and freed
    ones between those in use stay in memory.
    """
    option = _allocator("mallopt")
    if option is not None:
        option(_M_MMAP_THRESHOLD, _MAPPED_BYTES)


def _allocator(name: str) -> Callable[..., int] | None:
    """Return a function of glibc's allocator; None with another C library."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None


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
        array = empty(shape, dtype)
        self._file.seek(place)
        self._file.readinto(_bytes(array).data)
        return array

    def remove(self, place: int, size: int) -> None:
        """Let another array of `size` bytes take a place."""
        self._free[size].append(place)


def _bytes(array: Array) -> Array:
    """Return a view of the bytes of a contiguous array."""
    return array.reshape(-1).view(np.uint8)
