"""Buffers: the memory that a program allocates, and the times at which each buffer is in use."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.ir import Operation, SSAValue

from sdy.box import Ints
from sdy.passes.spmd.costs.kernels import Kernel


@dataclass(slots=True, eq=False)
class LiveRange:
    """The times from `begin` to `end`, inclusive, at which a value is in its buffer."""

    value: SSAValue
    begin: int
    end: int


class Buffer:
    """Memory for values of equal size, one after the other.

    Attributes:
        value: The value for which the buffer was allocated.
        scale: The bytes of the buffer relative to those of the value.
        ranges: The live ranges of the values, in order of time.
        successor: The buffer that the last reader of this one writes element by element, so that they can share memory.
        is_aliased: True if an operation other than an elementwise one writes its result in place. XLA lets no
            elementwise operation overwrite the buffer then, except that of a result (`heap_simulator.cc`).
    """

    def __init__(self, value: SSAValue, scale: int = 1) -> None:
        self.value = value
        self.scale = scale
        self.ranges: list[LiveRange] = []
        self.successor: Buffer | None = None
        self.is_aliased = False

    def size(self, bytes_of: Callable[[SSAValue], int]) -> int:
        """Return the bytes of the buffer, given those of values."""
        return bytes_of(self.value) * self.scale

    def write(self, value: SSAValue, time: int) -> None:
        """Replace the content of the buffer by `value`."""
        if self.ranges and self.ranges[-1].end >= time:
            self.ranges[-1].end = time - 1
            if self.ranges[-1].begin == time:
                self.ranges.pop()
        self.ranges.append(LiveRange(value, time, time))

    def read(self, time: int) -> None:
        """Keep the content of the buffer until `time`."""
        self.ranges[-1].end = max(self.ranges[-1].end, time)


@dataclass(frozen=True, slots=True)
class Allocation:
    """The buffers of a program."""

    operations: Sequence[Operation]
    """The operation that runs at each time."""
    kernels: Sequence[Kernel]
    """The kernels of the main function, in the order in which they run."""
    begins: Sequence[int]
    """The times at which the kernels of the main function begin."""
    arguments: Sequence[Buffer]
    """The buffers of the arguments of the main function."""
    aliased: Sequence[Buffer]
    """The buffers of the donated arguments that results alias."""
    results: Sequence[Buffer]
    """The buffers of the results that alias no argument."""
    temporaries: Sequence[Buffer]
    """The buffers of all other values."""

    def buffers(self) -> Iterator[Buffer]:
        """Yield all buffers."""
        yield from self.arguments
        yield from self.results
        yield from self.temporaries


def bytes_over_time(buffers: Iterable[Buffer], bytes_of: Callable[[SSAValue], int], num_times: int) -> Ints:
    """Return the bytes of the buffers in use at each time."""
    changes = np.zeros(num_times + 1, np.int64)
    for buffer in buffers:
        size = buffer.size(bytes_of)
        for each in buffer.ranges:
            changes[each.begin] += size
            changes[each.end + 1] -= size
    return np.cumsum(changes[:-1])
