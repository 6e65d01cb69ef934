"""The memory of this process. Nothing is imported that would be in what is measured."""

from pathlib import Path

NOW, MOST = "VmRSS", "VmHWM"
"""What it has now, and the most that it has had, as Linux calls them; `getrusage` counts that of the parent too."""


def memory(which: str) -> float:
    """That of this process, in MB."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(which))
    return int(line.split()[1]) / 1024
