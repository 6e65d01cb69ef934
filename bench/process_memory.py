"""Memory of the current process. The module imports little, since imports count as memory."""

import ctypes
from pathlib import Path

NOW, MOST = "VmRSS", "VmHWM"
"""Linux's names of current and peak memory. The peak of `getrusage` includes that of the parent."""


def memory(which: str) -> float:
    """Return the memory of this process in MB."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(which))
    return int(line.split()[1]) / 1024


def give_back() -> None:
    """Return free memory of C's allocator to the system, if it is glibc's.

    The allocator's arenas of XLA's threads are not growth, but can exceed it.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
