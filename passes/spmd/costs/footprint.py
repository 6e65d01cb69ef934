"""Static estimate of the peak memory of one device in a partitioned program, from the buffers that it allocates."""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from sdy.box import Ints
from sdy.passes.common.properties import value_bytes
from sdy.passes.spmd.costs.backend import Backend
from sdy.passes.spmd.costs.buffer_assignment import allocate
from sdy.passes.spmd.costs.buffers import bytes_over_time
from sdy.passes.spmd.costs.host_memory import host_values, takes_host_memory
from sdy.passes.spmd.costs.result_buffers import outside_results


@dataclass(frozen=True, slots=True)
class Moment:
    """The temporary values that are live while one kernel of the main function runs."""

    operation: Operation
    bytes: int
    """Bytes of the live values, without arguments, results, and the values in their buffers."""


@dataclass(frozen=True)
class Footprint:
    """The memory use of one device over a run of a program, in bytes, without the values in host memory."""

    outside: Sequence[SSAValue]
    """The arguments and results of the main function, which are live during the entire run.

    A result that reuses the buffer of a donated argument is left out.
    """
    moments: Sequence[Moment]
    """One entry per kernel of the main function, in the order in which they run."""
    at_peak: Sequence[SSAValue]
    """The temporary values that are live at the peak, those inside the operation that runs then included.

    An argument is among them if it is copied.
    """
    host_bytes: int
    """The peak bytes of this device's values in host memory."""

    @property
    def outside_bytes(self) -> int:
        """The bytes of the arguments and results."""
        return sum(map(value_bytes, self.outside))

    @property
    def bytes(self) -> int:
        """The peak memory in bytes, `peak_bytes` of the program."""
        return self.outside_bytes + (self.peak.bytes if self.peak else 0)

    @property
    def peak(self) -> Moment | None:
        """The moment of peak memory; None if the main function has no operations."""
        return max(self.moments, key=lambda moment: moment.bytes, default=None)


def peak_bytes(module: ModuleOp, backend: Backend = Backend.CPU, *, copies: bool = True) -> int:
    """Return the peak memory of one device in bytes: arguments, results and the most temporaries live at once.

    Args:
        module: The partitioned program.
        backend: The back end that compiles it.
        copies: Whether copies of operands and results in other orders of their dimensions count.
    """
    return _Memory(module, host_values(module), backend, copies=copies).peak_bytes()


def host_bytes(module: ModuleOp, backend: Backend = Backend.CPU) -> int:
    """Return the peak bytes of one device's values in host memory: arguments, results and offloaded values."""
    host = host_values(module)
    return _Memory(module, host, backend, counts_host=True).peak_bytes() if host else 0


def footprint(module: ModuleOp, backend: Backend = Backend.CPU) -> Footprint:
    """Return the memory use of one device over a run of the partitioned `module`, compiled by `backend`."""
    host = host_values(module)
    memory = _Memory(module, host, backend)
    outside = [value for value in memory.outside if value not in host]
    return Footprint(outside, [*memory.moments()], memory.at_peak(), host_bytes(module, backend))


class _Memory:
    """The bytes of a program's values in one memory: device memory or, with `counts_host`, host memory."""

    def __init__(
        self,
        module: ModuleOp,
        host: Set[SSAValue],
        backend: Backend,
        *,
        counts_host: bool = False,
        copies: bool = True,
    ):
        self._host = host
        self._counts_host = counts_host
        allocation = allocate(module, host, backend, copies=copies)
        self._operations, self._begins = allocation.operations, allocation.begins
        self._buffers = outside_results(allocation, self._size)
        self.outside = [buffer.value for buffer in (*allocation.arguments, *allocation.results)]
        """The arguments and results, which are live during the entire run."""

    def peak_bytes(self) -> int:
        """Return the bytes of the arguments and results, and of the most temporaries live at once."""
        return sum(map(self._size, self.outside)) + int(self._bytes.max(initial=0))

    def moments(self) -> Iterator[Moment]:
        """Yield the bytes live while each operation of the main function runs."""
        begins, operations = self._begins, self._operations
        for begin, end in zip(begins, [*begins[1:], len(operations)], strict=True):
            yield Moment(operations[begin], int(self._bytes[begin:end].max()))

    def at_peak(self) -> list[SSAValue]:
        """Return the temporaries that are live at the peak."""
        peak = int(self._bytes.argmax()) if len(self._bytes) else 0
        live = (
            [each.value] * buffer.scale
            for buffer in self._buffers
            for each in buffer.ranges
            if each.begin <= peak <= each.end and self._size(each.value)
        )
        return [value for values in live for value in values]

    def _size(self, value: SSAValue) -> int:
        """Return the bytes of `value` in this memory."""
        if value in self._host:
            return value_bytes(value) if self._counts_host and takes_host_memory(value) else 0
        return 0 if self._counts_host else value_bytes(value)

    @cached_property
    def _bytes(self) -> Ints:
        """The bytes of the temporaries in use at each time."""
        return bytes_over_time(self._buffers, self._size, len(self._operations))
