"""Offloading: the transfers of values to host memory after their last use in the forward pass, and back.

    device | x = ... | y = f(x) | ...                peak ...                | dx = g(x)
    link   |         | x to the host ------>|            |<------ x from the host |
    memory | x is on the device             | x is on the host | x is on the device

A transfer runs beside computation, and is exposed as far as there is too little of that; on some hardware, one from the
host is always exposed. The link has one direction for each way; a time is the number of a kernel.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sdy.passes.spmd.costs.hardware import Hardware

Seconds = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Transfer:
    """The times at which a value moves to host memory and back."""

    begin: int
    """The time of the last write or read before it leaves."""
    gone: int
    """The first time at which it is not in the memory of the device."""
    back: int
    """The first time at which it is in the memory of the device again."""
    end: int
    """The time of the first read afterwards."""
    seconds: float
    """The cost of both directions: the seconds that are exposed, and the traffic of the memory of the device."""


class HostLink:
    """The link between a device and its host during a step, and the computation beside which it can be used.

    Args:
        hardware: The hardware, which has such a link.
        seconds: The time of each kernel.
    """

    def __init__(self, hardware: Hardware, seconds: Sequence[float]) -> None:
        self._hardware = hardware
        self._idle_out: Seconds = np.array(seconds, np.float64)
        """The seconds of each kernel in which nothing moves to the host."""
        self._idle_in = self._idle_out.copy()
        """The seconds of each kernel in which nothing moves from the host."""

    def transfer(self, num_bytes: int, begin: int, peak: int, end: int) -> Transfer:
        """Return the transfers of a value that is used at `begin` and at `end`, and not needed at `peak` in between."""
        needed = self._hardware.host_seconds(num_bytes)
        out, exposed_out = _finished(self._idle_out[begin + 1 : peak], needed)
        beside = self._idle_in[peak + 1 : end][::-1]
        back, exposed_in = _finished(beside[:0] if self._hardware.host_waits else beside, needed)
        seconds = exposed_out + exposed_in + transfer_traffic(num_bytes, self._hardware)
        return Transfer(begin, begin + 1 + out, end - back, end, seconds)

    def reserve(self, num_bytes: int, transfer: Transfer) -> None:
        """Occupy the link for a transfer."""
        needed = self._hardware.host_seconds(num_bytes)
        _occupy(self._idle_out[transfer.begin + 1 : transfer.gone], needed)
        _occupy(self._idle_in[transfer.back : transfer.end][::-1], needed)


def transfer_traffic(num_bytes: int, hardware: Hardware) -> float:
    """Return the seconds for which the memory of a device reads a value that leaves, and writes it when it returns."""
    return 2 * num_bytes / hardware.memory_bandwidth / hardware.memory_fraction


def _finished(idle: Seconds, needed: float) -> tuple[int, float]:
    """Return the number of kernels beside which a transfer runs, and the seconds that remain after all of them."""
    done = idle.cumsum()
    count = int(done.searchsorted(needed)) + 1
    return (count, 0.0) if count <= len(idle) else (len(idle), needed - float(done[-1] if len(idle) else 0.0))


def _occupy(idle: Seconds, needed: float) -> None:
    idle -= np.clip(needed - (idle.cumsum() - idle), 0.0, idle)
