"""The memory of this process. Little is imported, as that would be in what is measured."""

import ctypes
from pathlib import Path

NOW, MOST = "VmRSS", "VmHWM"
"""What it has now, and the most that it has had, as Linux calls them; `getrusage` counts that of the parent too."""


def memory(which: str) -> float:
    """That of this process, in MB."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(which))
    return int(line.split()[1]) / 1024


def give_back() -> None:
    """Let C's allocator give the memory that is free back to the system, where it is glibc's.

    What it keeps for each of XLA's threads is no growth, and can be more than what is.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
