"""Resident memory of the process, measured."""

import ctypes
import os
import sys


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
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
